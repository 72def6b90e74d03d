"""The pieces of work that attempts began and completed, as the task's own reports or its requests
show them.

Where the task reports its steps, they are the measure; elsewhere each request for an effect is a
step, and in a task that does nothing but write files, what it writes to one until the next record
(`chaoskit.model.file_work`). A reported step is complete once it was recorded; in a task that
records nothing, and for requests, once its successor has started; or once the task has recorded it,
as far as its calls in an undisturbed run show that (`chaoskit.explore.completion`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import pairwise
from math import inf

from chaoskit.model.actions import Kill, KillLeader, Stop
from chaoskit.model.effects import Identity
from chaoskit.model.events import RequestReceived
from chaoskit.model.expectation import Expectation, FileRecord
from chaoskit.model.file_work import FileWork, pieces_of
from chaoskit.model.history import History
from chaoskit.model.schedule import parse_fault

BY_CHILD = "a child of the task"
"""Who recorded a step after its parent was killed."""

_KEEPING = Kill | KillLeader | Stop
"""What leaves the files of a task as it had written them."""

Which = Identity | str
"""What makes two pieces of work the same one: a request's identity, or a step's name."""


_COME_AGAIN = frozenset({408, 421, 425, 429})
"""Timeouts, and too early or too many requests (RFC 9110, 8470, 6585); SMTP's 421 (RFC 5321)."""


@dataclass(frozen=True, slots=True)
class Work:
    """One step that an attempt began or completed at event ``index``.

    ``name`` is the step, or the operation where only requests show it; ``identity`` is known for
    requests. ``by`` is the call that recorded it, where that is what shows that it is complete.
    """

    attempt: int
    name: str
    index: int
    identity: Identity | None = None
    by: str = ""

    @property
    def which(self) -> Which:
        """See `Which`."""
        return self.name if self.identity is None else self.identity


@dataclass(frozen=True, slots=True)
class Pieces:
    """``begun`` and ``done``: work of every attempt, in order, without what the scenario allows to
    be run again. ``allowed``: how often an undisturbed run does each piece.
    """

    begun: Sequence[Work]
    done: Sequence[Work]
    allowed: Mapping[Which, int]


@dataclass(frozen=True, slots=True)
class Redo:
    """Work that was complete (``first``) and that ``again`` began once more."""

    first: Work
    again: Work

    @property
    def attempt(self) -> int:
        """The attempt that did it again."""
        return self.again.attempt

    @property
    def within(self) -> bool:
        """Whether the same attempt had completed it."""
        return self.first.attempt == self.again.attempt


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


def pieces(history: History, expectation: Expectation) -> Pieces:
    """What the attempts of a trial began and completed."""
    if history.steps:
        begun, done = _begun_steps(history), _completed_steps(history)
        allowed: Mapping[Which, int] = Counter(expectation.steps)
    elif expectation.file_work is not None:
        begun, done = _work_on_files(history, expectation.file_work)
        allowed = Counter(expectation.file_work.steps)
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
    return Pieces(begun, done, allowed)


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


def _work_on_files(history: History, work: FileWork) -> tuple[list[Work], list[Work]]:
    """What was begun, and what is complete. What damage or a loss of power took away is not."""
    pieces = pieces_of(history, work)
    begun = [Work(piece.attempt, piece.output, piece.index) for piece in pieces]
    kept = history.only_interrupted
    done = [Work(p.attempt, p.output, p.index, by=p.by) for p in pieces if p.complete and kept]
    return begun, done


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

    Those of which a record was there when the first attempt was ended, too. Empty where the
    undisturbed run has no fixed order: there a successor proves nothing. One that is sent before
    the answer to the request ahead of it proves nothing either.
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
        if not _answered_well(body, history):
            continue
        answered = history.replies[body.request][0]
        if proof is not None and proof[0] == body.attempt and proof[1] > answered:
            done.append(_work(index, body, expectation))
    found = {work.index: work for work in (*_left_behind(history, expectation), *done)}
    found |= {work.index: work for work in _recorded_requests(history, expectation)}
    return [found[index] for index in sorted(found)]


def _left_behind(history: History, expectation: Expectation) -> Iterator[Work]:
    """The requests of which an attempt left a record behind that is known as such: a file that the
    scenario names, or that a child of the task has written, which outlived it.
    """
    outlived = {
        ended.attempt
        for _, ended in history.attempts
        if not ended.leftovers
        and any(
            body.attempt == ended.attempt and body.fault.startswith(f"{KillLeader()}@")
            for _, body in history.landed
        )
    }
    asked = [
        _work(index, body, expectation)
        for index, body in history.requests
        if body.wants is not None and _answered_well(body, history)
    ]
    for work in asked:
        if work.attempt in outlived and work.identity in expectation.by_children:
            yield replace(work, by=BY_CHILD)
    whole: set[str] = set()
    for attempt, sizes in history.records.items():
        for file in expectation.files:
            if file.file not in whole and sizes.get(file.file, -1) >= file.bytes:
                whole.add(file.file)
                yield from _recorded_in(file, [work for work in asked if work.attempt <= attempt])


def _recorded_in(file: FileRecord, asked: Sequence[Work]) -> Iterator[Work]:
    """The requests that a file says are complete: of those of each step the last ones."""
    left = Counter(file.steps)
    for work in reversed(asked):
        if work.identity is not None and left[work.identity]:
            left[work.identity] -= 1
            yield replace(work, by=file.file)


def _recorded_requests(history: History, expectation: Expectation) -> Iterator[Work]:
    """The request whose record was there at the point at which the first attempt was ended."""
    for _, fault in history.landed:
        landed = parse_fault(fault.fault)
        step = expectation.recorded.get(str(landed.point))
        if fault.attempt != 1 or step is None or not isinstance(landed.action, _KEEPING):
            continue
        asked = [
            _work(index, body, expectation)
            for index, body in history.requests
            if body.attempt == 1 and body.wants is not None and _answered_well(body, history)
        ]
        if asked and asked[-1].identity == step.identity:
            yield replace(asked[-1], by=step.by)


def _answered_well(body: RequestReceived, history: History) -> bool:
    reply = history.replies.get(body.request)
    return reply is not None and reply[1].good


def _work(index: int, body: RequestReceived, expectation: Expectation) -> Work:
    assert body.wants is not None
    identity = expectation.identify(body.wants)
    return Work(body.attempt, f"{body.service}.{body.operation}", index, identity)
