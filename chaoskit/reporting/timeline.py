"""A trial told in lines: what happened, in order, in words that are safe to show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from chaoskit.model.effects import Effect
from chaoskit.model.events import (
    AttemptEnded,
    AttemptStarted,
    Body,
    CallSeen,
    Crossed,
    EffectApplied,
    EndStated,
    EventsLeftOut,
    FaultLanded,
    RecordsFound,
    ReplySent,
    RequestReceived,
    StateObserved,
    StepReported,
    TraceNoted,
)
from chaoskit.model.findings import Finding
from chaoskit.model.history import History
from chaoskit.reporting.clean import plain

FRAME = (AttemptStarted, AttemptEnded, FaultLanded, EndStated)
"""What no telling leaves out."""

WORDS_MOST = 300


class Line(NamedTuple):
    """One event in words: its number, the seconds since the trial began, who did what.

    ``who`` is "task", "chaoskit" or the name of a service. ``effect``: the outside world changed.
    """

    event: int
    seconds: float
    attempt: int
    who: str
    what: str
    effect: bool = False


def told(history: History, only: frozenset[int] | None = None) -> Iterator[Line]:
    """Every event in words, or only those at these indexes."""
    names: dict[int | None, RequestReceived] = {}
    for event in history.events:
        body = event.body
        if isinstance(body, RequestReceived):
            names[body.request] = body
        if only is None or event.index in only:
            who, what = _in_words(body, names)
            yield Line(
                event.index,
                event.at_us / 1e6,
                getattr(body, "attempt", 0),
                plain(who, WORDS_MOST),
                plain(what, WORDS_MOST),
                isinstance(body, EffectApplied),
            )


def without_calls(history: History) -> frozenset[int]:
    """All but the system calls and the lines of code, of which there can be thousands."""
    return frozenset(e.index for e in history.events if not isinstance(e.body, CallSeen | Crossed))


def minimal(history: History, finding: Finding) -> frozenset[int]:
    """The fewest events that show ``finding``: its witness with the requests that it belongs to,
    the step that each was part of, the last deed before each fault, and the attempts.
    """
    kept = {event.index for event in history.events if isinstance(event.body, FRAME)}
    witness = set(finding.witness)
    requests = {
        body.request
        for index in witness
        if isinstance(
            body := history.events[index].body, RequestReceived | EffectApplied | ReplySent
        )
    }
    kept |= witness
    step = deed = -1
    for event in history.events:
        body = event.body
        if isinstance(body, RequestReceived | ReplySent) and body.request in requests:
            kept.add(event.index)
        if event.index in witness and step >= 0:
            kept.add(step)
        if isinstance(body, FaultLanded) and deed >= 0:
            kept.add(deed)
        if isinstance(body, StepReported):
            step = event.index
        if not isinstance(body, FaultLanded):
            deed = event.index
    return frozenset(kept)


def table(lines: Sequence[Line]) -> list[str]:
    """``lines`` as plain text: when, in which attempt, who, what; in columns."""
    widest = max((len(line.who) for line in lines), default=0)
    return [
        f"{line.seconds:9.3f} s  {line.attempt or '-':>2}  {line.who:<{widest}}  {line.what}"
        for line in lines
    ]


def _in_words(body: Body, names: dict[int | None, RequestReceived]) -> tuple[str, str]:
    match body:
        case RequestReceived():
            wants = f"asked for {body.wants.in_words()}" if body.wants else "asked"
            return body.service, f"{_name(body)} {wants}{_with_key(body.key)}"
        case EffectApplied():
            asked = names.get(body.request)
            by = f", by {_name(asked)}" if asked else ""
            judged = " (ignored)" if body.ignored else ""
            return body.effect.service, f"did {_effect(body.effect)}{by}{judged}"
        case ReplySent():
            asked = names.get(body.request)
            again = ", the answer to an earlier one again" if body.deduped else ""
            lost = "" if body.delivered else ", and the answer was lost"
            who = asked.service if asked else "service"
            return who, f"{_name(asked)} answered {body.status}{again}{lost}"
        case Crossed() | CallSeen() | StepReported() | EndStated() | AttemptEnded():
            return "task", _of_the_task(body)
        case _:
            return "chaoskit", _of_chaoskit(body)


def _of_the_task(body: Crossed | CallSeen | StepReported | EndStated | AttemptEnded) -> str:
    match body:
        case Crossed():
            return f"passed {body.name}#{body.ordinal}"
        case CallSeen():
            return f"about to {body.in_words}"
        case StepReported():
            return f"step {body.step} {body.phase}"
        case EndStated():
            step = f", at step {body.step}" if body.step else ""
            return f"says that it ends {body.end}: {body.reason}{step}"
        case AttemptEnded():
            return _end(body)


def _of_chaoskit(
    body: AttemptStarted | TraceNoted | FaultLanded | EventsLeftOut | RecordsFound | StateObserved,
) -> str:
    match body:
        case AttemptStarted():
            return f"attempt {body.attempt} {'resumes' if body.resume else 'starts'}"
        case TraceNoted():
            return f"noted {body.what} {body.detail}".rstrip()
        case FaultLanded():
            return f"FAULT {body.fault}"
        case EventsLeftOut():
            return f"keeps no more than {body.limit:,} events ({body.most:,} {body.what})"
        case StateObserved():
            return f"looked at {len(body.digests) + len(body.left)} files"
        case RecordsFound():
            return f"found {len(body.files)} files that record completed steps"


def _name(asked: RequestReceived | None) -> str:
    return f"{asked.operation}#{asked.ordinal}" if asked else "a request"


def _effect(effect: Effect) -> str:
    return f"{effect.in_words()}{_with_key(effect.key)}"


def _with_key(key: str | None) -> str:
    return f", with the key {key}" if key else ""


def _end(body: AttemptEnded) -> str:
    how = {
        "exit": f"ended by itself with exit code {body.code}",
        "signal": f"died by a signal of its own, {body.code}",
        "killed": "killed",
        "stopped": "stopped when it was asked to",
        "timeout": "was killed at the time limit",
        "not-started": "could not be started",
    }[body.how]
    left = f", leaving {len(body.leftovers)} processes" if body.leftovers else ""
    return f"{how} after {body.seconds:.3f} s{left}"
