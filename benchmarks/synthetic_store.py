"""A stored campaign that nobody ran: as many trials as asked for, of a task that pays twice.

The task makes a system call for each point and two charges at its end. Each trial is killed at one
call; every third one charges the first customer again. Histories have eleven events each. What is
in them is decided by the numbers alone, so that the same call makes the same store.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from chaoskit.campaign.options import Options
from chaoskit.campaign.repeating import Repeated
from chaoskit.campaign.store import Store, StoredTrial
from chaoskit.model.effects import Effect, identity_of
from chaoskit.model.events import (
    AttemptEnded,
    AttemptStarted,
    Body,
    CallSeen,
    EffectApplied,
    Event,
    FaultLanded,
    ReplySent,
    RequestReceived,
)
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Diagnosis, Finding, Judgement
from chaoskit.model.history import History
from chaoskit.model.token import Target

EVENTS_A_TRIAL = 11
WRONG_EACH = 3
FLAKY_AT, UNKNOWN_AT = 5, 7
"""The numbers of one trial that is flaky, and of one that proves nothing."""


def make(folder: Path, trials: int) -> Path:
    """A store with ``trials`` trials in ``folder``, which is made; the folder."""
    folder.mkdir(parents=True)
    calls = [f"write(part-{number % 40:02d}.bin)#{number // 40 + 1}" for number in range(trials)]
    survey = _history(_undisturbed(calls))
    charges = (charge(1), charge(2))
    expectation = Expectation(
        effects=charges,
        order=tuple(identity_of(one, {}) for one in charges),
        requests=tuple((identity_of(one, {}), 1) for one in charges),
        seconds=1.0,
    )
    with Store(folder, writable=True) as store:
        options = Options(target=Target(scenario="synthetic.py"), mechanisms=("calls",))
        store.put("options", msgspec.json.encode(options).decode())
        store.put("points.total", str(trials))
        store.put("finished", "all")
        store.put("seconds", "1.0")
        store.put_survey(survey, survey, expectation)
        for number, call in enumerate(calls):
            trial, history = _trial(number, call)
            store.put_trial(trial, history.encode())
        if trials > FLAKY_AT:
            store.put_repeats(f"kill@{calls[FLAKY_AT]}", Repeated(first=False, shown=2, times=5))
    return folder


def charge(number: int) -> Effect:
    """The charge of one customer."""
    return Effect(
        service="payments",
        kind="charge",
        fields=(("amount", f"{1000 + number}"), ("currency", "eur"), ("customer", f"c{number}")),
        who=f"customer-{number}@example.com",
        what=f"charge of 10.{number:02d} EUR",
        ref=f"ch_{number}",
    )


def _history(bodies: Iterator[Body]) -> History:
    return History(tuple(Event(i, 100 * i, body) for i, body in enumerate(bodies)))


def _undisturbed(calls: list[str]) -> Iterator[Body]:
    yield AttemptStarted(1, resume=False)
    for call in calls:
        yield CallSeen(attempt=1, call=call, bytes=512)
    yield from _charged(1, 1, 1)
    yield from _charged(1, 2, 2)
    yield AttemptEnded(attempt=1, how="exit", code=0, seconds=1.0)


def _charged(attempt: int, request: int, number: int) -> Iterator[Body]:
    yield RequestReceived(
        attempt=attempt,
        request=request,
        service="payments",
        operation="charge",
        ordinal=number,
        wants=charge(number),
    )
    yield EffectApplied(attempt=attempt, effect=charge(number), request=request)
    yield ReplySent(attempt=attempt, request=request, status=200)


def _trial(number: int, call: str) -> tuple[StoredTrial, History]:
    wrong = number % WRONG_EACH == 0
    history = _history(_killed(call, wrong=wrong))
    judgement = Judgement(verdict="VALID")
    if wrong:
        judgement = Judgement(verdict="INVALID", findings=(_finding(),))
    elif number == UNKNOWN_AT:
        judgement = Judgement(verdict="UNKNOWN", unknowns=("the kill did not land",))
    return (
        StoredTrial(f"kill@{call}", 1, number, judgement, landed=True, real=number % 64 == 0),
        history,
    )


def _killed(call: str, *, wrong: bool) -> Iterator[Body]:
    yield AttemptStarted(1, resume=False)
    if wrong:
        yield from _charged(1, 1, 1)
    else:
        yield from (CallSeen(attempt=1, call=call, bytes=512) for _ in range(3))
    yield FaultLanded(1, f"kill@{call}")
    yield AttemptEnded(attempt=1, how="killed", code=9, seconds=0.5)
    yield AttemptStarted(2, resume=True)
    yield from _charged(2, 2, 1)
    yield AttemptEnded(attempt=2, how="exit", code=0, seconds=0.5)


def _finding() -> Finding:
    return Finding(
        kind="duplicate_effect",
        operation="payments.charge",
        subject="customer=c1",
        expected=f"{charge(1).in_words()}: once",
        seen="twice",
        because="attempts 1 and 2 each did it; without an idempotency key",
        witness=(2, 8),
        diagnosis=Diagnosis(
            "order: the record is written after the effect",
            "the effect was booked before the kill, and the resume did not know of it",
            "give the service an idempotency key that is stored before the effect",
        ),
    )
