"""How far each attempt had come: what was complete before the next one began, and was done again.

Where the task reports its steps, they are the measure; elsewhere each request for an effect is a
step. A reported step is complete once it was recorded; in a task that records nothing, and for
requests, once its successor has started.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import pairwise
from math import inf

from chaoskit.model.effects import Identity
from chaoskit.model.events import AttemptStarted, RequestReceived
from chaoskit.model.expectation import Expectation
from chaoskit.model.history import History

Which = Identity | str
"""What makes two pieces of work the same one: a request's identity, or a step's name."""


_COME_AGAIN = frozenset({408, 421, 425, 429})
"""Timeouts, and too early or too many requests (RFC 9110, 8470, 6585); SMTP's 421 (RFC 5321)."""


@dataclass(frozen=True, slots=True)
class Work:
    """One step that an attempt began or completed at event ``index``.

    ``name`` is the step, or the operation where only requests show it; ``identity`` is known for
    requests.
    """

    attempt: int
    name: str
    index: int
    identity: Identity | None = None

    @property
    def which(self) -> Which:
        """See `Which`."""
        return self.name if self.identity is None else self.identity


@dataclass(frozen=True, slots=True)
class Redo:
    """Work that was complete at event ``first`` and that ``again`` began once more."""

    first: int
    again: Work

    @property
    def attempt(self) -> int:
        """The attempt that did it again."""
        return self.again.attempt


@dataclass(frozen=True, slots=True)
class Progress:
    """``done``: completed work of every attempt, in order. ``redone``: what was begun again.

    Both without what the scenario allows to be run again. ``allowed``: how often an undisturbed
    run does each piece. ``began``: the event at which each attempt did; what a paused one does when
    it goes on was not there when its successor began.
    """

    done: Sequence[Work]
    redone: Sequence[Redo]
    allowed: Mapping[Which, int]
    began: Mapping[int, int] = field(default_factory=dict)

    def done_before(self, attempt: int) -> list[Work]:
        """What earlier attempts had completed, each piece as often as an undisturbed run has it."""
        left = dict(self.allowed)
        found: list[Work] = []
        for work in self.done:
            room = left.get(work.which, 1)
            earlier = work.attempt < attempt and work.index < self.began.get(attempt, inf)
            if earlier and room > 0:
                left[work.which] = room - 1
                found.append(work)
        return found


@lru_cache(maxsize=1)
def progress(history: History, expectation: Expectation) -> Progress:
    """How far each attempt had come. The last answer is kept: several checkers ask."""
    if history.steps:
        begun, done = _begun_steps(history), _completed_steps(history)
        allowed: Mapping[Which, int] = Counter(expectation.steps)
    else:
        begun, done = (
            _begun_requests(history, expectation),
            _completed_requests(history, expectation),
        )
        allowed = dict(expectation.requests)
    patterns = expectation.redo_allowed
    begun, done = (
        [w for w in works if not any(fnmatchcase(w.name, p) for p in patterns)]
        for works in (begun, done)
    )
    began = {body.attempt: index for index, body in history.of(AttemptStarted)}
    return Progress(done, list(_redone(begun, done, allowed)), allowed, began)


def _redone(
    begun: Sequence[Work], done: Sequence[Work], allowed: Mapping[Which, int]
) -> Iterator[Redo]:
    """Work that was begun although earlier attempts had left none of it to do.

    An undisturbed run does each piece a known number of times. What earlier attempts have completed
    of these is not to be begun again.
    """
    first: dict[Which, int] = {}
    settled: Counter[Which] = Counter()
    asked: Counter[Which] = Counter()
    waiting = list(reversed(done))
    attempt = 0
    for work in begun:
        if work.attempt != attempt:
            attempt = work.attempt
            asked.clear()
            while waiting and waiting[-1].attempt < attempt and waiting[-1].index < work.index:
                earlier = waiting.pop()
                settled[earlier.which] += 1
                first.setdefault(earlier.which, earlier.index)
        which = work.which
        asked[which] += 1
        if settled[which] and asked[which] > allowed.get(which, 1) - settled[which]:
            yield Redo(first[which], work)


def _begun_steps(history: History) -> list[Work]:
    return [
        Work(body.attempt, body.step, index)
        for index, body in history.steps
        if body.phase == "started"
    ]


def _completed_steps(history: History) -> list[Work]:
    """Steps that the task itself reported, complete by record or by a successor."""
    recorded = [
        Work(body.attempt, body.step, index)
        for index, body in history.steps
        if body.phase == "recorded"
    ]
    if recorded:
        return recorded
    begun = _begun_steps(history)
    last = {work.attempt: work for work in begun}
    return [
        work
        for work in begun
        if last[work.attempt].index > work.index and last[work.attempt].name != work.name
    ]


def _begun_requests(history: History, expectation: Expectation) -> list[Work]:
    return [
        _work(index, body, expectation)
        for index, body in history.requests
        if body.wants is not None and not _turned_away(body, history)
    ]


def _turned_away(body: RequestReceived, history: History) -> bool:
    """Whether a request was told to come again: nothing was decided about what it asked for."""
    reply = history.replies.get(body.request)
    return reply is not None and (reply[1].status in _COME_AGAIN or reply[1].status >= 500)


def _completed_requests(history: History, expectation: Expectation) -> list[Work]:
    """Requests for an effect that were answered before the same attempt sent another one.

    Empty where the undisturbed run has no fixed order: there a successor proves nothing. One that
    is sent before the answer to the request ahead of it proves nothing either.
    """
    if not expectation.ordered:
        return []
    asks = [(index, body) for index, body in history.requests if body.wants is not None]
    early = set(expectation.early)
    done: list[Work] = []
    proof: tuple[int, int] | None = None  # attempt and event of the next one that waited
    for (index, body), (follower_index, follower) in reversed(list(pairwise(asks))):
        assert follower.wants is not None
        if not follower.early and expectation.identify(follower.wants) not in early:
            proof = follower.attempt, follower_index
        reply = history.replies.get(body.request)
        if reply is None or not reply[1].good:
            continue
        if proof is not None and proof[0] == body.attempt and proof[1] > reply[0]:
            done.append(_work(index, body, expectation))
    return done[::-1]


def _work(index: int, body: RequestReceived, expectation: Expectation) -> Work:
    assert body.wants is not None
    identity = expectation.identify(body.wants)
    return Work(body.attempt, f"{body.service}.{body.operation}", index, identity)
