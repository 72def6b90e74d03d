"""How far a resume must be followed: until the world is as it was in the undisturbed run.

When a resume asks a service for the same thing as the undisturbed run did, with the same effects
behind it and files that mean the same, the rest can only differ by what the process remembers. When
that is so at two requests in a row, between which it has read its records and acted on them, the
rest of the undisturbed run is taken for the rest of the resume. The cost of an exploration then
grows with the number of its states and not with its square.

What this could hide is a fault that shows itself only later and only through memory (mail that only
the first process sends, say). So some resumes are followed past their horizon, and compared with
what was taken for granted: `chaoskit.campaign.bounding` says which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from chaoskit.model.effects import Effect
from chaoskit.model.events import (
    AttemptEnded,
    Body,
    EffectApplied,
    Event,
    RequestReceived,
    ResumeBounded,
    renumbered,
)
from chaoskit.model.history import History
from chaoskit.trial.logical import Column, Reader
from chaoskit.trial.snapshots import Tree

IN_A_ROW = 2
"""Requests at which the world must be that of the undisturbed run, one after the other."""

OFTEN = 8
"""After so many requests in vain only this part of them is looked at, a few in a row each: reading
the files takes longer than the task's own step, and some tasks are never as in the undisturbed run.
"""

Ending = Literal["at once", "gently", "noted"]
Signature = tuple[str, str, str | None, object]
Doomed = Callable[[Sequence[Effect]], bool]
"""Whether these effects already break the contract, whatever else happens."""

Identify = Callable[[Effect], object]
"""What makes an effect the same business fact, whatever varies from run to run."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A request of the undisturbed run: its place in the history, and the world before it."""

    request: RequestReceived
    index: int
    tree: Tree


def _as_booked(effect: Effect) -> object:
    return effect.operation, effect.fields


@dataclass(slots=True)
class Undisturbed:
    """An undisturbed run: its history, and the world at each of its requests and at its end.

    ``keys``: idempotency keys are the same in each run, as far as is known, and are compared.
    ``unlike``: files at the same request in this run and in the resume that is being followed, with
    the same effects before, which were not the same.
    """

    reader: Reader
    identify: Identify = _as_booked
    events: tuple[Event, ...] = ()
    end: Tree | None = None
    masked: set[Column] = field(default_factory=set)
    keys: bool = True
    unlike: list[tuple[Tree, Tree]] = field(default_factory=list)
    _moments: list[Moment] = field(default_factory=list)
    _found: dict[Signature, list[Moment]] = field(default_factory=dict)
    _digests: dict[tuple[int, int], bytes] = field(default_factory=dict)
    _before: dict[tuple[int, bool], Counter[object]] = field(default_factory=dict)

    def met(self, request: RequestReceived, index: int, tree: Tree) -> None:
        """Learn the world at one more request; they come in order."""
        self._moments.append(Moment(request, index, tree))
        self._sort(self._moments[-1])

    def _sort(self, moment: Moment) -> None:
        self._found.setdefault(self.signature(moment.request), []).append(moment)

    def signature(self, request: RequestReceived) -> Signature:
        """What makes two requests the same: what is asked of whom, whatever varies."""
        wants = None if request.wants is None else self.identify(request.wants)
        return request.service, request.operation, request.key if self.keys else None, wants

    def effects(self, bodies: Iterable[Body], *, booked: bool = False) -> Counter[object]:
        """The effects of requests, as often as they happened; with ``booked`` those of databases
        as well, which are only known when an attempt is over.
        """
        return Counter(
            (self.identify(body.effect), body.effect.key if self.keys else None)
            for body in bodies
            if isinstance(body, EffectApplied) and (booked or body.request is not None)
        )

    def learn(self, end: Tree, history: Sequence[Event] = ()) -> None:
        """A full resume that was found right was this, and ended so: what differs is a trace of
        recovery, or varies from run to run.
        """
        if self.end is None:
            return
        for one, other in ((self.end, end), *self.unlike):
            self.masked |= self.reader.differing_columns(one, other)
        self.unlike.clear()
        if self.keys and history and _keys(history) != _keys(self.events):
            self.keys = False
            self._found.clear()
            for moment in self._moments:
                self._sort(moment)

    def same(
        self, request: RequestReceived, bodies: Sequence[Body], take: Callable[[], Tree]
    ) -> int | None:
        """The index of the undisturbed run's request before which the world was this one."""
        effects = self.effects(bodies)
        likely = [
            moment
            for moment in self._found.get(self.signature(request), ())
            if self._effects_before(moment) == effects
        ]
        if not likely:
            return None  # the files need not be read
        tree = take()
        mine = self.reader.digest(tree, self.masked)
        for moment in likely:
            if mine == self._digest(moment):
                return moment.index
            self.unlike = [*self.unlike[-1:], (moment.tree, tree)]
        return None

    def _effects_before(self, moment: Moment) -> Counter[object]:
        key = moment.index, self.keys
        if key not in self._before:
            bodies = (event.body for event in self.events[: moment.index])
            self._before[key] = self.effects(bodies)
        return self._before[key]

    def _digest(self, moment: Moment) -> bytes:
        key = moment.index, len(self.masked)  # which only grows
        if key not in self._digests:
            self._digests[key] = self.reader.digest(moment.tree, self.masked)
        return self._digests[key]

    def like(self, request: RequestReceived) -> int | None:
        """The index of the undisturbed run's request for the same thing, if there is only one."""
        moments = self._found.get(self.signature(request), ())
        return moments[0].index if len(moments) == 1 else None

    @property
    def trees(self) -> list[Tree]:
        """Every state that is remembered."""
        known = [moment.tree for moment in self._moments]
        return known if self.end is None else [*known, self.end]

    def follows(self, index: int, other: int) -> bool:
        """Whether the request at ``other`` is the next one after that at ``index``."""
        order = [moment.index for moment in self._moments]
        place = order.index(index)
        return order[place + 1 : place + 2] == [other]


def _keys(events: Iterable[Event]) -> set[str | None]:
    return {e.body.key for e in events if isinstance(e.body, RequestReceived)}


@dataclass(slots=True)
class Horizon:
    """The watch over one resume: `looks` says when it need not be followed any more.

    ``how`` that is then ended: at once; "gently", at the next system call; or not at all, and it
    is only noted.
    """

    undisturbed: Undisturbed
    doomed: Doomed
    how: Ending = "at once"
    cut: int | None = None
    _last: int | None = None
    _looks: int = 0
    _since_doom: int = 0

    def __post_init__(self) -> None:
        self.undisturbed.unlike.clear()

    def looks(
        self, request: RequestReceived, events: Sequence[Event], take: Callable[[], Tree]
    ) -> bool:
        """Whether the resume may end at this request; ``cut`` is then where the rest begins."""
        bodies = [event.body for event in events]
        if self.doomed([b.effect for b in bodies if isinstance(b, EffectApplied)]):
            self._since_doom += 1
            like = self.undisturbed.like(request)
            if self._since_doom >= IN_A_ROW and like is not None:
                self.cut = like
            return self.cut is not None
        self._looks += 1
        if self._looks > OFTEN and self._looks % OFTEN >= IN_A_ROW:
            self._last = None
            return False
        same = self.undisturbed.same(request, bodies, take)
        last, self._last = self._last, same
        if same is not None and last is not None and self.undisturbed.follows(last, same):
            self.cut = same
        return self.cut is not None


def rest(undisturbed: Undisturbed, cut: int, events: Sequence[Event], attempt: int) -> list[Body]:
    """What the undisturbed run did from its request at ``cut`` on, as if ``attempt`` had done it.

    The request itself has been seen already. What a database books when an attempt is over is what
    is missing in ``events`` of all that it books.
    """
    first = undisturbed.events[cut].body
    last = next(e.body for e in reversed(events) if isinstance(e.body, RequestReceived))
    assert isinstance(first, RequestReceived)
    assert isinstance(last, RequestReceived)
    shift = last.request - first.request
    booked = Counter(
        undisturbed.identify(b.effect)  # a time of day is another one in each attempt
        for e in events
        if isinstance(b := e.body, EffectApplied) and b.request is None
    )
    found: list[Body] = [ResumeBounded(attempt)]
    for event in undisturbed.events[cut + 1 :]:
        body = event.body
        if isinstance(body, EffectApplied) and body.request is None:
            fact = undisturbed.identify(body.effect)
            if booked[fact] > 0:
                booked[fact] -= 1
                continue
        found.append(_moved(body, attempt, shift))
    return found


def _moved(body: Body, attempt: int, shift: int) -> Body:
    if hasattr(body, "attempt"):
        body = msgspec.structs.replace(body, attempt=attempt)
    return renumbered(body, shift)


def as_if_bounded(undisturbed: Undisturbed, cut: int, events: Sequence[Event], at: int) -> History:
    """The history that a resume would have had, had it been broken off at its horizon.

    Args:
        undisturbed: the run that the resume is compared with.
        cut: the request of that run from which on the rest is taken.
        events: what the resume did, to its end.
        at: the index of the note that it was followed all the same.
    """
    note = events[at].body
    assert isinstance(note, ResumeBounded)
    before = events[:at]
    bodies = rest(undisturbed, cut, before, note.attempt)
    added = [Event(at + number, events[at].at_us, body) for number, body in enumerate(bodies)]
    return History((*before, *added))


def goes_on_alike(undisturbed: Undisturbed, said: History, seen: History, at: int) -> bool:
    """Whether a resume that was followed past its horizon asked for the same, in the same order, as
    the rest of the undisturbed run, with the same effects and the same end.

    Args:
        undisturbed: the run that the resume is compared with.
        said: its history `as_if_bounded`.
        seen: its history.
        at: the index in both from which on they may differ.
    """
    return _deeds(undisturbed, said.events[at:]) == _deeds(undisturbed, seen.events[at:])


def _deeds(undisturbed: Undisturbed, events: Sequence[Event]) -> object:
    bodies = [event.body for event in events]
    return (
        [undisturbed.signature(b) for b in bodies if isinstance(b, RequestReceived)],
        undisturbed.effects(bodies, booked=True),
        [(b.how, b.code) for b in bodies if isinstance(b, AttemptEnded)],
    )
