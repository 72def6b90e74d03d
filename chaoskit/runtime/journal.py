"""One run's part of the store: which of its steps this attempt has touched, and what they mean.

Everything that a step does to the store goes through here, whichever order it is recorded in and
whether it is awaited or not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from hashlib import sha256
from threading import RLock
from typing import Any

from chaoskit import probe
from chaoskit.runtime import refusals, results
from chaoskit.runtime.books import Books, Change, Put
from chaoskit.runtime.budgets import Budgets, added
from chaoskit.runtime.errors import (
    Compensating,
    DuplicateStep,
    Misuse,
    StoreUnavailable,
    announced,
    cancelled_run,
    stale_owner,
)
from chaoskit.runtime.fingerprint import Fingerprint, differences
from chaoskit.runtime.phases import Phase
from chaoskit.runtime.pins import Pins
from chaoskit.runtime.positions import Positions, refuse_moved
from chaoskit.runtime.records import (
    Decision,
    Means,
    Order,
    Plan,
    Proof,
    RunRecord,
    State,
    StepRecord,
    absent,
    decide,
    means,
    orders_contradict,
)

NAME_CHARACTERS_MAX = 200
UNDO = "undo/"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:\-]*")

_AFTERMATH = {
    Order.INTENT_FIRST: (
        "The call has returned, so its effect may have happened; its completion is not recorded, "
        "and the step stays in doubt for the next resume"
    ),
    Order.RECORD_AFTER: (
        "The call has returned, so its effect may have happened; no record was written, and the "
        "next resume repeats the call"
    ),
    Order.ATOMIC: "The transaction was rolled back: nothing happened",
}


class Journal:
    """The steps of one run in a store, for one attempt.

    Attributes:
        run: what was recorded of the run when it was opened, with this owner's token.
        books: the store.
        pins, budgets: what this attempt has declared.
        undos: the steps with an undo that this attempt has taken, by name.
        undos_begun: whether this attempt, or an earlier one, takes the run back.
    """

    def __init__(self, books: Books, run: RunRecord, *, ordered: bool = True) -> None:
        self.run = run
        self.books = books
        self.pins = Pins(books, run, self._next_key)
        self.budgets = Budgets(lambda: books.spent(run.run_id))
        self.undos: dict[str, Plan] = {}
        self.undos_begun = run.compensating
        self._pid = os.getpid()
        self._positions = Positions(lambda: books.positions(run.run_id), ordered=ordered)
        self._names: set[str] = set()
        self._owed: dict[str, Put] = {}
        self._phase: Phase | None = None
        self._lock = RLock()

    def claim(self, plan: Plan, *, awaited: bool = False) -> int | None:
        """Hold a step's name for this attempt; returns its index in the run, if it has one.

        Raises:
            Misuse: the name cannot be one.
            DuplicateStep: another step of this attempt has this name.
            CodeChanged: another step is recorded at this index.
        """
        name = plan.name
        _check_name(name, forward=plan.forward)
        if os.getpid() != self._pid:
            raise announced(refusals.forked(self.run.run_id, self._pid))
        with self._lock:
            if name in self._names:
                raise DuplicateStep(
                    f"two steps of this attempt are named {name!r}, so a resume could not tell "
                    f'them apart: give each its own name, for example f"{name}/{{index}}"'
                )
            position = self._positions.take(name, awaited=awaited) if plan.forward else None
            self._names.add(name)
        return position

    def give_back(self, name: str) -> None:
        """The step did not reach its end: its name is free for another try."""
        with self._lock:
            self._names.discard(name)

    def left(self, name: str) -> None:
        """The step is no longer in flight, however it ended."""
        with self._lock:
            self._positions.left(name)

    def look(self, plan: Plan, position: int | None) -> StepRecord:
        """What is recorded of the planned step, and whether it may go on.

        Raises:
            OtherInputs, CodeChanged, Refused: it was recorded with other inputs, at another index,
                or begun in another order.
            StaleOwner: another process has the run.
            Cancelled, Compensating: the step is not done, and none begins any more.
        """
        self._pay(plan.name)
        seen = self.books.see(self.run.run_id, plan.name)
        if seen.token != self.run.token:
            raise stale_owner(self.run.run_id, self.run.token, seen.token)
        record = seen.step or absent(plan, self._key(plan.name, 0), position)
        if record.state is not State.FORGOTTEN:
            self.refuse_other_inputs(plan, record.inputs)
        if orders_contradict(record, plan):
            raise announced(refusals.other_order(record, plan))
        refuse_moved(record, position)
        if record.state is State.DONE:
            return record
        if plan.forward and seen.cancelled is not None:
            raise cancelled_run(self.books.place, self.run.run_id, seen.cancelled)
        if plan.forward and seen.compensating:
            raise Compensating(refusals.compensating(self.run.run_id, plan.name))
        return self._as_planned(record, plan, position)

    def _as_planned(self, record: StepRecord, plan: Plan, position: int | None) -> StepRecord:
        """The record of a step that is not done, as this attempt would go on with it."""
        phase = self._phase
        if record.state is State.ABSENT and phase and phase.again and plan.policy.keyed:
            record = record._replace(state=State.BEGUN, begun_at=phase.begun_at)
        if record.state is State.ABSENT:
            return record
        return record._replace(
            inputs=plan.inputs,
            policy=str(plan.policy),
            position=position,
            undoable=plan.undo is not None,
        )

    def refuse_other_inputs(self, plan: Plan, recorded: Fingerprint) -> None:
        """Raise `OtherInputs`, naming step and fields, if the step was recorded with others."""
        if recorded is not plan.inputs and (found := differences(recorded, plan.inputs)):
            raise announced(refusals.other_inputs(plan.name, found))

    def decide(self, record: StepRecord, plan: Plan) -> Decision:
        """What to do with the step now; never `Decision.UNKNOWN`.

        Raises:
            OutcomeUnknown: the step was begun, and nothing can tell whether it happened.
        """
        now = probe.now() if record.state is State.BEGUN else 0.0
        decision = decide(record, plan, now)
        if decision is Decision.UNKNOWN:
            where = self.books.place, self.run.run_id
            if means(record, plan, now) is Means.KEY_TOO_OLD:
                lasts = plan.policy.key_lasts_s or 0
                raise announced(refusals.key_too_old(*where, record, now, lasts))
            raise announced(refusals.unknown(*where, record))
        return decision

    def refuse_poisoned(self, record: StepRecord, plan: Plan) -> None:
        """Raise if the body was begun too often without an end, or its retries are used up.

        Raises:
            Poisoned: it seems to kill its process.
            RetriesExhausted: it failed as often as it may.
        """
        if record.state is not State.BEGUN:
            return
        where = self.books.place, self.run.run_id
        if record.crashes >= plan.crashes_max:
            raise announced(refusals.poisoned(*where, record))
        if plan.retries is not None and record.failures > plan.retries:
            raise announced(refusals.exhausted(*where, record, plan.retries))

    def begin(self, record: StepRecord, plan: Plan) -> tuple[StepRecord, StepRecord]:
        """Begin the body: charge it, and record the intent where the order asks for it.

        Returns:
            The begun record, and the one that the store holds.

        Raises: what `look` and `Budgets.charge` raise.
        """
        self.budgets.charge(plan.name, plan.costs)
        held = self.holds_back(plan)
        try:
            at = probe.now() if plan.policy.keyed and plan.order is Order.INTENT_FIRST else None
            begun = record.begun(plan.order, at, added(record.costs, plan.costs))
            if plan.order is not Order.INTENT_FIRST or held:
                return begun, record
            if self._phase is not None and plan.irreversible:
                self.flush()
            self.put(begun, after=record, begins=plan.forward)
        except BaseException:
            self.budgets.give_back(plan.costs)
            raise
        return begun, begun

    def failed(
        self, begun: StepRecord, stored: StepRecord, plan: Plan, error: BaseException
    ) -> tuple[StepRecord, bool]:
        """Record that a body came back with an exception.

        Returns:
            The record that the store holds now, and whether the body may be begun once more.
        """
        counts = plan.retries is not None and isinstance(error, plan.retry_on)
        if stored.state is not State.BEGUN and not counts:
            return stored, False  # nothing was recorded before the call, and nothing need be
        record = begun.failed(counts=counts)
        self.put(record, after=stored)
        return record, counts and record.failures <= (plan.retries or 0)

    def complete(
        self, done: StepRecord, after: StepRecord, plan: Plan, *, told: bool = False
    ) -> None:
        """Record a completion: now, or with its phase; with what the step changed.

        ``told``: a watching trial knows that the step is done, as it is durable elsewhere.
        """
        if plan.changes:
            pins = self.pins.changed_by(plan)
            self._commit(Change(puts=(Put(done, after.attempt),), pins=pins), done.name)
            self.pins.repinned(pins)
        elif self.holds_back(plan):
            with self._lock:
                assert self._phase is not None
                self._phase.hold(Put(done, after.attempt), plan)
            return
        else:
            self.put(done, after=after)
        if not told:
            probe.step(done.name, "recorded")
        probe.point(f"{done.name}.record")

    def holds_back(self, plan: Plan) -> bool:
        """Whether the step's completion is held back by a phase, which then speaks for it."""
        return self._phase is not None and not plan.changes and self._phase.holds(plan)

    def restore(self, record: StepRecord, plan: Plan) -> Any:
        """The result that a completed step returned, in this attempt or an earlier one.

        Raises:
            DamagedStore: what is stored is not a result.
        """
        try:
            result = results.decode(record.result)
        except ValueError as error:
            raise self.books.unreadable(f"the result of step {record.name!r}", error) from error
        if not self.holds_back(plan):
            probe.step(record.name, "restored")
        return result

    def encode(self, result: object, step: str, order: Order) -> str:
        """A step's result as the store holds it; raises `UnstorableResult`."""
        return results.encode(result, f"step {step!r}", _AFTERMATH[order])

    def put(self, record: StepRecord, *, after: StepRecord, begins: bool = False) -> None:
        """Record ``record`` durably in place of ``after``, which was read or written before.

        A completion that cannot be written just now is kept, and written before the step is looked
        at again, or before the run finishes.
        """
        self._commit(Change((Put(record, after.attempt),), begins), record.name)

    def write(self, puts: Sequence[Put]) -> None:
        """Record all these in one commit."""
        self.books.commit(self.run.run_id, self.run.token, Change(puts=tuple(puts)))

    def flush(self) -> None:
        """Commit what a phase holds back."""
        with self._lock:
            if self._phase is not None:
                self._phase.flush()

    def enter(self, phase: Phase) -> int | None:
        """Begin a phase; returns its index.

        Raises:
            Misuse: another one is open.
        """
        with self._lock:
            if self._phase is not None:
                raise Misuse(
                    f"phase {phase.name!r} cannot begin inside phase {self._phase.name!r}: end "
                    "that one first"
                )
            position = self.claim(Plan(phase.name, Order.PHASE, {}))
            self.left(phase.name)
            self._phase = phase
        return position

    def leave(self, phase: Phase) -> None:
        """End a phase, however it ended."""
        with self._lock:
            if self._phase is phase:
                self._phase = None

    def refuse_unfinished(self) -> None:
        """Raise whatever stands against finishing the run.

        Raises:
            Misuse: a phase is open.
            OutcomeUnknown: a step is in doubt.
            CodeChanged: a recorded step was never taken.
        """
        with self._lock:
            if self._phase is not None:
                raise Misuse(f"the run cannot finish inside phase {self._phase.name!r}")
            for name in list(self._owed):
                self._pay(name)
        if doubts := self.in_doubt():
            raise announced(refusals.unknown_at_finish(self.books.place, self.run.run_id, doubts))
        if not self.undos_begun:
            self._positions.refuse_removed()

    def in_doubt(self) -> tuple[str, ...]:
        """The names of the steps that need `settle`, a look-up or another call."""
        return self.books.in_doubt(self.run.run_id)

    def settle(self, step: str, result: object, *, happened: bool) -> None:
        """Record what a person found out about a step that was begun.

        Raises:
            Misuse: the step is not in doubt, or the arguments contradict each other.
        """
        settled, before = self.settled(step, result, happened=happened)
        self.put(settled, after=before)

    def settled(
        self, step: str, result: object, *, happened: bool
    ) -> tuple[StepRecord, StepRecord]:
        """The record that `settle` would write, and the present one; raises what it raises."""
        if not isinstance(happened, bool):
            raise Misuse(f"happened is True or False, not {happened!r}")
        record = self.books.see(self.run.run_id, step).step
        if record is None or record.state is not State.BEGUN or record.order is Order.PHASE:
            known = ", ".join(self.in_doubt()) or "none"
            raise Misuse(f"step {step!r} is not in doubt; steps in doubt: {known}")
        if not happened and result is not None:
            raise Misuse(f"step {step!r} cannot have a result if it did not happen")
        if happened:
            text = results.encode(result, f"step {step!r}", "Nothing was settled")
            return record.done(text, Proof.OPERATOR), record
        return record.cleared(), record

    def remember_file(self, file: str) -> None:
        """Record, before a first marker is written to ``file``, that it may hold one."""
        self.books.commit(self.run.run_id, self.run.token, Change(marker_file=file))

    def check_owner(self) -> None:
        """Raise `StaleOwner` if another process has taken the run over."""
        token = self.books.see(self.run.run_id, "").token
        if token != self.run.token:
            raise stale_owner(self.run.run_id, self.run.token, token)

    def _commit(self, change: Change, step: str) -> None:
        try:
            self.books.commit(self.run.run_id, self.run.token, change)
        except StoreUnavailable:
            (put,) = change.puts
            if put.step.state is State.DONE:
                self._owed[step] = put
            raise

    def _pay(self, step: str) -> None:
        """Write a completion that could not be written when it was due."""
        put = self._owed.get(step)
        if put is not None:
            self.write([put])
            del self._owed[step]
            probe.step(step, "recorded")

    def _key(self, step: str, generation: int) -> str:
        """Equal in every attempt of this run, different for every other step and run."""
        text = f"{self.run.uid}\n{step}" + (f"\n{generation}" if generation else "")
        return sha256(text.encode()).hexdigest()[:32]

    def _next_key(self, step: StepRecord) -> str:
        return self._key(step.name, step.generation + 1)


def _check_name(name: str, *, forward: bool = True) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > NAME_CHARACTERS_MAX:
        raise Misuse(
            f"a step's name is at most {NAME_CHARACTERS_MAX} letters, digits and _ . / : - and "
            f"begins with a letter, digit or _, not {name!r}: what else tells steps apart goes "
            "into inputs="
        )
    if forward and name.startswith(UNDO):
        raise Misuse(f"names that begin with {UNDO} are those of undo steps: rename {name!r}")
