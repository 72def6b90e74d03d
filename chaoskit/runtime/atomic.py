"""The life of an atomic step: effect and completion land together, in the effect's own database.

The step's own record in the run's store follows; until it has, the marker stands for it. A marker
is removed in the transaction of the next atomic step on that database, or when the run finishes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from chaoskit import probe
from chaoskit.runtime import markers
from chaoskit.runtime.errors import Misuse
from chaoskit.runtime.journal import Journal
from chaoskit.runtime.records import Decision, Order, Plan, Proof, State, StepRecord

Body = Callable[[sqlite3.Cursor], Any]


class AtomicSteps:
    """The atomic steps of one run in one attempt, whichever databases they write to."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._run = journal.run
        self._files = set(journal.store.marker_files(journal.run.run_id))

    def live(self, plan: Plan, connection: sqlite3.Connection, body: Body) -> Any:
        """The life of one step in this attempt; returns its result."""
        journal = self._journal
        with journal.claimed(plan.name):
            record = journal.read(plan)
            if journal.decide(record, plan) is Decision.RESTORE:
                return journal.restore(record)
            probe.point(f"{plan.name}.begin")
            self._remember(markers.file_of(connection))
            with markers.transaction(connection):
                marker = self._marker(connection, plan, record)
                if marker is None:
                    result, text = self._run_body(connection, plan, record, body)
                    probe.point(f"{plan.name}.effect")
            if marker is not None:
                return self._adopt(marker, plan, record)
            probe.step(plan.name, "recorded")
            probe.point(f"{plan.name}.commit")
            journal.put(record.begun(plan.order).done(text, Proof.CALL), after=record)
            probe.point(f"{plan.name}.record")
            return result

    def forget_markers(self) -> None:
        """Remove every marker of the run, also where this attempt opened no connection."""
        for file in sorted(self._files):
            markers.forget_run(file, self._run.uid)

    def _remember(self, file: str) -> None:
        """Make sure that a marker in ``file`` will be found again; one commit per file and run."""
        if file not in self._files:
            self._journal.store.add_marker_file(self._run.run_id, file)
            self._files.add(file)

    def _marker(
        self, connection: sqlite3.Connection, plan: Plan, record: StepRecord
    ) -> markers.Marker | None:
        """The marker of this very step, unless a person has cleared it; forgets spent ones."""
        try:
            found = markers.of_run(connection, self._run.uid)
        except ValueError as error:
            raise self._journal.store.unreadable("its steps in chaoskit_step", error) from error
        own = found.pop(plan.name, None)
        for step in found:
            if self._is_recorded(step):
                markers.forget(connection, self._run.uid, step)
        if own is not None and own.result is None and record.state is State.CLEARED:
            return None
        return own

    def _is_recorded(self, step: str) -> bool:
        record = self._journal.store.find_step(self._run.run_id, step)
        return record is not None and record.state is State.DONE

    def _run_body(
        self, connection: sqlite3.Connection, plan: Plan, record: StepRecord, body: Body
    ) -> tuple[Any, str]:
        markers.begin(connection, self._run.uid, plan.name, plan.inputs)
        probe.step(plan.name, "started")
        result = body(connection.cursor())
        text = self._journal.encode(result, plan.name, Order.ATOMIC)
        if not markers.complete(connection, self._run.uid, plan.name, text):
            self._journal.put(record.begun(Order.ATOMIC), after=record)
            raise Misuse(
                f"the body of step {plan.name!r} ended its transaction, so that what it wrote may "
                "stand without the step's completion; its outcome is unknown until it is settled. "
                "Leave commit and rollback out of the body, and executescript(), which commits"
            )
        return result, text

    def _adopt(self, marker: markers.Marker, plan: Plan, record: StepRecord) -> Any:
        """Take a marker for the completion that an earlier attempt did not come to record.

        Raises:
            Refused: that attempt had other inputs.
            OutcomeUnknown: the marker has no result, because its body ended the transaction.
        """
        self._journal.refuse_other_inputs(plan, marker.inputs)
        begun = record.begun(plan.order)
        if marker.result is None:
            self._journal.put(begun, after=record)
            raise self._journal.unknown(begun)
        done = begun.done(marker.result, Proof.MARKER)
        result = self._journal.restore(done)
        self._journal.put(done, after=record)
        probe.point(f"{plan.name}.record")
        return result
