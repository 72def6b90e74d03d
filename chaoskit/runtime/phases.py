"""Phases: completions of repeatable steps that are held back and committed together.

A record after each call is worth its price where redoing a call is dear or wrong. Where calls are
cheap and may be repeated, one commit for many of them is enough: a kill costs what was held back.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from chaoskit import probe
from chaoskit.runtime.books import Put
from chaoskit.runtime.errors import Misuse
from chaoskit.runtime.records import Order, Plan, Policy, Proof, State, StepRecord

if TYPE_CHECKING:
    from chaoskit.runtime.journal import Journal

_POLICY = Policy(read_only=True)


class Phase:
    """A part of a run whose repeatable steps are recorded together. Made by `Run.phase`.

    Attributes:
        name: unique among the run's steps.
        begun_at: when it was first begun, in seconds since the epoch; it stands for the intents
            of the steps in it.
        again: it was begun in an earlier attempt, so that steps without a record may have happened.
    """

    def __init__(
        self, journal: Journal, name: str, cost_s: float | None, effects: int | None
    ) -> None:
        for what, limit in (("cost_s", cost_s), ("effects", effects)):
            if limit is not None and not limit > 0:
                raise Misuse(f"{what}= of a phase is more than 0, not {limit!r}")
        self.name = name
        self.begun_at: float | None = None
        self.again = False
        self._journal = journal
        self._plan = Plan(name, Order.PHASE, {}, policy=_POLICY)
        self._cost_s, self._effects = cost_s, effects
        self._held: list[Put] = []
        self._seconds, self._count = 0.0, 0
        self._record: StepRecord | None = None

    def __enter__(self) -> Self:
        journal, plan = self._journal, self._plan
        position = journal.enter(self)
        try:
            record = journal.look(plan, position)
            self.again = record.state is not State.ABSENT
            self.begun_at = record.begun_at
            if record.state is State.DONE:
                probe.step(self.name, "restored")
                return self
            journal.refuse_poisoned(record, plan)
            probe.point(f"{self.name}.begin")
            begun = record.begun(Order.PHASE, probe.now())
            journal.put(begun, after=record, begins=True)
            self._record, self.begun_at = begun, begun.begun_at
            probe.step(self.name, "started")
        except BaseException:
            journal.leave(self)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._complete()
            elif issubclass(kind, Exception):
                self.flush()
        finally:
            self._journal.leave(self)

    def holds(self, plan: Plan) -> bool:
        """Whether a step's completion is held back here."""
        return plan.forward and (
            plan.repeatable or (plan.policy.keyed and plan.order is Order.INTENT_FIRST)
        )

    def hold(self, put: Put, plan: Plan) -> None:
        """Keep a completion until redoing what is kept would cost as much as is allowed.

        Called by one thread at a time.
        """
        self._held.append(put)
        self._seconds += put.step.seconds or 0
        self._count += not plan.policy.read_only
        too_long = self._cost_s is not None and self._seconds >= self._cost_s
        too_many = self._effects is not None and self._count >= self._effects
        if too_long or too_many:
            self.flush()

    def flush(self) -> None:
        """Commit what is held back; it stays held back if that fails."""
        if self._held:
            self._journal.write(self._held)
            self._forget_held()

    def _complete(self) -> None:
        if self._record is None:
            self.flush()
            return
        done = self._record.done("null", Proof.CALL, seconds=self._seconds)
        self._journal.write([*self._held, Put(done, self._record.attempt)])
        self._forget_held()
        probe.step(self.name, "recorded")
        probe.point(f"{self.name}.record")

    def _forget_held(self) -> None:
        self._held.clear()
        self._seconds, self._count = 0.0, 0
