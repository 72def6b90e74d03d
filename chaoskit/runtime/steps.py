"""The life of a step whose effect is a call: from what is recorded to what is recorded next.

The life is written once, as a generator that yields what is to be called; one driver calls it,
the other awaits it. So a step in a thread and a step in an event loop cannot come to differ.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from chaoskit import probe
from chaoskit.runtime.errors import Misuse
from chaoskit.runtime.journal import Journal
from chaoskit.runtime.records import Decision, Order, Plan, Proof, State, StepRecord


class Effect:
    """What a step's call is told of itself, and where it leaves the ids of what it did.

    Attributes:
        key: an idempotency key, 32 hexadecimal digits: the same whenever this step of this run is
            called, different for every other step and run.
        step: the step's name.
        attempt: how many times the body was begun, this time included, as far as it is recorded
            (always 1 with `Order.RECORD_AFTER`, which records nothing before the call). In a
            look-up: how many times it was begun before.
        token: the run's fencing token, which grows each time the run is opened. A service that
            remembers the highest it has seen can turn away a process that was replaced.
    """

    __slots__ = ("_ids", "attempt", "key", "step", "token")

    def __init__(self, record: StepRecord, token: int) -> None:
        self.key = record.key
        self.step = record.name
        self.attempt = record.attempt
        self.token = token
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


class _Answer(NamedTuple):
    """What a call came back with: a value, or an exception."""

    value: Any = None
    error: BaseException | None = None


class _Failed(Exception):
    """Carries an exception of the user's out of the life: some kinds may not leave a generator."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


Ask: TypeAlias = Callable[[Effect], Any]
Life: TypeAlias = Generator[Callable[[], Any], _Answer, Any]


def life(
    journal: Journal, plan: Plan, call: Ask, look_up: Ask | None, *, awaited: bool = False
) -> Life:
    """The life of one step in this attempt; yields what to call, returns the step's result.

    An exception of the call is no completion: nobody knows what it left behind, so the step stays
    begun, and the name is free for another try.
    """
    position = journal.claim(plan, awaited=awaited)
    try:
        record = journal.look(plan, position)
        if plan.undo is not None:
            journal.undos[plan.name] = plan
        if record.state is State.DONE:
            return journal.restore(record, plan)
        decision = journal.decide(record, plan)
        probe.point(f"{plan.name}.begin")
        while True:
            if decision is Decision.LOOK_UP and look_up is not None:
                effect = Effect(record, journal.run.token)
                found = _value((yield partial(look_up, effect)))
                if found is not None:
                    text = journal.encode(found, plan.name, plan.order)
                    done = record.done(text, Proof.LOOK_UP, effect.ids)
                    journal.complete(done, record, plan)
                    return found
            answer, record = yield from _body(journal, plan, record, call)
            if answer is not None:
                return answer.value
            decision = journal.decide(record, plan)
    except BaseException:
        journal.give_back(plan.name)
        raise
    finally:
        journal.left(plan.name)


def _body(
    journal: Journal, plan: Plan, record: StepRecord, call: Ask
) -> Generator[Callable[[], Any], _Answer, tuple[_Answer | None, StepRecord]]:
    """One call of the body; the answer is None where it failed and is to be tried again."""
    journal.refuse_poisoned(record, plan)
    if plan.needs or plan.changes:
        journal.pins.verify(plan, record)
    begun, stored = journal.begin(record, plan)
    if plan.order is Order.INTENT_FIRST and stored is begun:
        probe.point(f"{plan.name}.intent")
    if not journal.holds_back(plan):
        probe.step(plan.name, "started")
    effect = Effect(begun, journal.run.token)
    began = time.perf_counter()
    answer = yield partial(call, effect)
    seconds = time.perf_counter() - began
    if answer.error is not None:
        failed, again = journal.failed(begun, stored, plan, answer.error)
        if again:
            return None, failed
        raise _Failed(answer.error)
    probe.point(f"{plan.name}.effect")
    text = journal.encode(answer.value, plan.name, plan.order)
    done = begun.done(text, Proof.CALL, effect.ids, round(seconds, 6))
    journal.complete(done, stored, plan)
    return answer, done


def _value(answer: _Answer) -> Any:
    if answer.error is not None:
        raise _Failed(answer.error)
    return answer.value


ENDS = (Exception, KeyboardInterrupt, SystemExit)
"""With these a body comes back: its process was not killed."""


def drive(steps: Life) -> Any:
    """Live ``steps`` to its end, calling what it asks for."""
    with closing(steps):
        answer: Any = None
        try:
            while True:
                ask = steps.send(answer)
                try:
                    answer = _Answer(ask())
                except ENDS as error:
                    answer = _Answer(error=error)
        except StopIteration as end:
            return end.value
        except _Failed as failed:
            raised = failed.error
    try:
        raise raised
    finally:
        del raised, answer  # an error that is held by a frame in its own traceback is never freed


async def drive_async(steps: Life) -> Any:
    """Live ``steps`` to its end, calling what it asks for and awaiting what can be awaited."""
    asyncio = sys.modules.get("asyncio")
    ends = (*ENDS, asyncio.CancelledError) if asyncio else ENDS
    with closing(steps):
        answer: Any = None
        try:
            while True:
                ask = steps.send(answer)
                try:
                    value = ask()
                    answer = _Answer(await value if isinstance(value, Awaitable) else value)
                except ends as error:
                    answer = _Answer(error=error)
        except StopIteration as end:
            return end.value
        except _Failed as failed:
            raised = failed.error
    try:
        raise raised
    finally:
        del raised, answer  # an error that is held by a frame in its own traceback is never freed
