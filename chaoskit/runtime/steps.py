"""The life of a step whose effect is a call: from what is recorded to what is recorded next.

The life is written once, as a generator that yields what is to be called; one driver calls it,
the other awaits it. So a step in a thread and a step in an event loop cannot come to differ.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import closing
from functools import partial
from typing import Any, TypeAlias

from chaoskit import probe
from chaoskit.runtime.errors import Misuse
from chaoskit.runtime.journal import Journal
from chaoskit.runtime.records import Decision, Order, Plan, Proof, StepRecord


class Effect:
    """What a step's call is told of itself, and where it leaves the ids of what it did.

    Attributes:
        key: an idempotency key, 32 hexadecimal digits: the same whenever this step of this run is
            called, different for every other step and run.
        step: the step's name.
        attempt: how many times the body was begun, this time included, as far as it is recorded
            (always 1 with `Order.RECORD_AFTER`, which records nothing before the call). In a
            look-up: how many times it was begun before.
    """

    __slots__ = ("_ids", "attempt", "key", "step")

    def __init__(self, record: StepRecord) -> None:
        self.key = record.key
        self.step = record.name
        self.attempt = record.attempt
        self._ids: list[str] = []

    def produced(self, effect_id: str) -> None:
        """Note the id that another system gave to what this step did, for the step's record."""
        if not isinstance(effect_id, str):
            raise Misuse(f"an effect id is text, not {effect_id!r}: write str(id)")
        self._ids.append(effect_id)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids noted so far."""
        return tuple(self._ids)


Ask: TypeAlias = Callable[[Effect], Any]
Life: TypeAlias = Generator[Callable[[], Any], Any, Any]


def life(journal: Journal, plan: Plan, call: Ask, look_up: Ask | None) -> Life:
    """The life of one step in this attempt; yields what to call, returns the step's result.

    An exception of the call is not recorded: nobody knows what it left behind, so the step stays
    begun, and the name is free for another try.
    """
    with journal.claimed(plan.name):
        record = journal.read(plan)
        decision = journal.decide(record, plan)
        if decision is Decision.RESTORE:
            return journal.restore(record)
        probe.point(f"{plan.name}.begin")
        if decision is Decision.LOOK_UP and look_up is not None:
            effect = Effect(record)
            found = yield partial(look_up, effect)
            if found is not None:
                text = journal.encode(found, plan.name, plan.order)
                _complete(journal, record.done(text, Proof.LOOK_UP, effect.ids), after=record)
                return found
        begun = record.begun(plan.order)
        if plan.order is Order.INTENT_FIRST:
            journal.put(begun, after=record)
            record = begun
            probe.point(f"{plan.name}.intent")
        probe.step(plan.name, "started")
        effect = Effect(begun)
        result = yield partial(call, effect)
        probe.point(f"{plan.name}.effect")
        text = journal.encode(result, plan.name, plan.order)
        _complete(journal, begun.done(text, Proof.CALL, effect.ids), after=record)
        return result


def _complete(journal: Journal, done: StepRecord, *, after: StepRecord) -> None:
    journal.put(done, after=after)
    probe.step(done.name, "recorded")
    probe.point(f"{done.name}.record")


def drive(steps: Life) -> Any:
    """Live ``steps`` to its end, calling what it asks for."""
    with closing(steps):
        answer = None
        while True:
            try:
                ask = steps.send(answer)
            except StopIteration as end:
                return end.value
            answer = ask()


async def drive_async(steps: Life) -> Any:
    """Live ``steps`` to its end, calling what it asks for and awaiting what can be awaited."""
    with closing(steps):
        answer = None
        while True:
            try:
                ask = steps.send(answer)
            except StopIteration as end:
                return end.value
            answer = ask()
            if isinstance(answer, Awaitable):
                answer = await answer
