"""The life of an atomic step: effect and completion land together, in the effect's own database.

The step's own record in the run's store follows; until it has, the marker stands for it. A marker
is removed in the transaction of the next atomic step on that database, or when the run finishes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from chaoskit import probe
from chaoskit.runtime import refusals
from chaoskit.runtime.errors import Misuse, announced
from chaoskit.runtime.journal import Journal
from chaoskit.runtime.markers import Marker, Markers, markers_at, markers_of
from chaoskit.runtime.records import Decision, Order, Plan, Proof, State, StepRecord

Body = Callable[[Any], Any]
C_co = TypeVar("C_co", covariant=True)


class Connection(Protocol[C_co]):
    """A connection to an effect's database, as far as the types go."""

    def cursor(self) -> C_co:
        """What the body of an atomic step gets."""


class _Database(NamedTuple):
    """The effect's, as the caller gave it, and how markers are written in its kind."""

    connection: Any
    markers: Markers


class AtomicSteps:
    """The atomic steps of one run in one attempt, whichever databases they write to."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._run = journal.run
        self._files = set(journal.books.marker_files(journal.run.run_id))
        self._known: dict[str, Any] = {}

    def live(self, plan: Plan, connection: Any, body: Body) -> Any:
        """The life of one step in this attempt; returns its result."""
        journal = self._journal
        position = journal.claim(plan)
        try:
            record = journal.look(plan, position)
            if plan.undo is not None:
                journal.undos[plan.name] = plan
            if journal.decide(record, plan) is Decision.RESTORE:
                return journal.restore(record, plan)
            return self._done_now(plan, record, connection, body)
        except BaseException:
            journal.give_back(plan.name)
            raise
        finally:
            journal.left(plan.name)

    def _done_now(self, plan: Plan, record: StepRecord, connection: Any, body: Body) -> Any:
        journal = self._journal
        probe.point(f"{plan.name}.begin")
        journal.flush()
        database = _Database(connection, markers_of(connection))
        self._remember(database)
        with database.markers.transaction(connection, self._run.uid):
            marker = self._marker(database, plan, record)
            if marker is None:
                if plan.needs or plan.changes:
                    journal.pins.verify(plan, record)
                began = time.perf_counter()
                begun, stored = journal.begin(record, plan)
                result, text = self._run_body(database, plan, record, body)
                seconds = round(time.perf_counter() - began, 6)
                journal.check_owner()
                probe.point(f"{plan.name}.effect")
        if marker is not None:
            return self._adopt(marker, plan, record)
        probe.step(plan.name, "recorded")
        probe.point(f"{plan.name}.commit")
        done = begun.done(text, Proof.CALL, seconds=seconds)
        journal.complete(done, stored, plan, told=True)
        return result

    def forget_markers(self) -> None:
        """Remove every marker of the run, also where this attempt opened no connection."""
        for file in sorted(self._files):
            markers_at(file).forget_run(file, self._run.uid, self._known.get(file))

    def _remember(self, database: _Database) -> None:
        """Make sure that a marker there will be found again; one commit per database and run."""
        file = database.markers.file_of(database.connection)
        self._known[file] = database.connection
        if file not in self._files:
            self._journal.remember_file(file)
            self._files.add(file)

    def _marker(self, database: _Database, plan: Plan, record: StepRecord) -> Marker | None:
        """The marker of this very step, unless a person has cleared it; forgets spent ones."""
        connection, markers = database
        try:
            found = markers.of_run(connection, self._run.uid)
        except ValueError as error:
            raise self._journal.books.unreadable("its steps in chaoskit_step", error) from error
        own = found.pop(plan.name, None)
        for step in found:
            if self._is_recorded(step):
                markers.forget(connection, self._run.uid, step)
        if own is not None and own.result is None and record.state is State.CLEARED:
            return None
        return own

    def _is_recorded(self, step: str) -> bool:
        record = self._journal.books.see(self._run.run_id, step).step
        return record is not None and record.state is State.DONE

    def _run_body(
        self, database: _Database, plan: Plan, record: StepRecord, body: Body
    ) -> tuple[Any, str]:
        connection, markers = database
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

    def _adopt(self, marker: Marker, plan: Plan, record: StepRecord) -> Any:
        """Take a marker for the completion that an earlier attempt did not come to record.

        Raises:
            Refused: that attempt had other inputs.
            OutcomeUnknown: the marker has no result, because its body ended the transaction.
        """
        self._journal.refuse_other_inputs(plan, marker.inputs)
        begun = record.begun(plan.order)
        if marker.result is None:
            self._journal.put(begun, after=record)
            raise announced(refusals.unknown(self._journal.books.place, self._run.run_id, begun))
        done = begun.done(marker.result, Proof.MARKER)
        result = self._journal.restore(done, plan)
        self._journal.complete(done, record, plan, told=True)
        return result
