"""How far each attempt had come: which steps and requests were complete before the next one began.

A step counts as completed once its completion was recorded or its successor has started.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from chaoskit.model.effects import Identity
from chaoskit.model.events import RequestReceived
from chaoskit.model.expectation import Expectation
from chaoskit.model.history import History


@dataclass(frozen=True, slots=True)
class Redo:
    """Something completed in an earlier attempt that ``attempt`` did again.

    ``name`` is the step, or the operation where only requests show it; ``first`` and ``again``
    are the events; ``identity`` is known for requests.
    """

    attempt: int
    name: str
    first: int
    again: int
    identity: Identity | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """Something that was complete when its attempt ended."""

    attempt: int
    name: str
    index: int
    identity: Identity | None = None


def completed_steps(history: History) -> list[Done]:
    """Steps that the task itself reported, complete by record or by a successor."""
    records = any(body.phase == "recorded" for _, body in history.steps)
    done: list[Done] = []
    for position, (index, body) in enumerate(history.steps):
        if records:
            complete = body.phase == "recorded"
        else:
            later = history.steps[position + 1 :]
            complete = body.phase == "started" and any(
                other.attempt == body.attempt and other.step != body.step for _, other in later
            )
        if complete:
            done.append(Done(body.attempt, body.step, index))
    return done


def completed_requests(history: History, expectation: Expectation) -> list[Done]:
    """Requests for an effect that were answered and followed by another one in the same attempt.

    Empty where the undisturbed run has no fixed order: there a successor proves nothing.
    """
    if not expectation.ordered:
        return []
    asks = [(index, body) for index, body in history.requests if body.wants is not None]
    done: list[Done] = []
    for position, (index, body) in enumerate(asks[:-1]):
        reply = history.replies.get(body.request)
        if reply is None or not reply[1].delivered or reply[1].status >= 400:
            continue
        follower_index, follower = asks[position + 1]
        if follower.attempt == body.attempt and follower_index > reply[0]:
            done.append(Done(body.attempt, _name(body), index, _identity(body, expectation)))
    return done


def redone_steps(history: History) -> Iterator[Redo]:
    """Reported steps that were started again after they were complete."""
    first: dict[str, Done] = {}
    for done in completed_steps(history):
        first.setdefault(done.name, done)
    for index, body in history.steps:
        known = first.get(body.step)
        if body.phase == "started" and known is not None and body.attempt > known.attempt:
            yield Redo(body.attempt, body.step, known.index, index)


def redone_requests(history: History, expectation: Expectation) -> Iterator[Redo]:
    """Requests for an effect that were sent again after they were complete.

    An undisturbed run asks for each effect a known number of times. What earlier attempts have
    completed of these may not be asked for again.
    """
    done = completed_requests(history, expectation)
    allowed = expectation.request_counts
    asked: Counter[tuple[int, Identity]] = Counter()
    for index, body in history.requests:
        if body.wants is None:
            continue
        identity = _identity(body, expectation)
        asked[body.attempt, identity] += 1
        before = [d for d in done if d.identity == identity and d.attempt < body.attempt]
        left = allowed.get(identity, 0) - len(before)
        if before and asked[body.attempt, identity] > left:
            yield Redo(body.attempt, _name(body), before[0].index, index, identity)


def redone(history: History, expectation: Expectation) -> list[Redo]:
    """All redone work that the scenario does not allow.

    Where the task reports its steps, they are the measure; elsewhere each request is a step.
    """
    found = redone_steps(history) if history.steps else redone_requests(history, expectation)
    return [redo for redo in found if not may_be_redone(redo, expectation)]


def may_be_redone(what: Done | Redo, expectation: Expectation) -> bool:
    """Whether the scenario allows to run this again after it was complete."""
    return any(fnmatchcase(what.name, pattern) for pattern in expectation.redo_allowed)


def completed(history: History, expectation: Expectation) -> list[Done]:
    """All completed work, by the same measure as `redone`."""
    if history.steps:
        return completed_steps(history)
    return completed_requests(history, expectation)


def _name(body: RequestReceived) -> str:
    return f"{body.service}.{body.operation}"


def _identity(body: RequestReceived, expectation: Expectation) -> Identity:
    assert body.wants is not None
    return expectation.identify(body.wants)
