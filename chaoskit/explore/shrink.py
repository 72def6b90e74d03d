"""Shrinking: from a schedule that shows a finding to the smallest one that still shows it.

Of two candidates the smaller one is the one that has, in this order (`Shrinker.size`):

1. fewer faults;
2. fewer attempts up to the last one with a fault;
3. fewer faults that hang on a time;
4. the earlier points: the first fault counts before the second, and so on. A point's place is the
   one in the order that is known for its attempt; a point that is not in it stands behind it;
5. fewer items of the input.

What is tried, again and again until nothing of it helps any more:

1. without several attempts, then without each one, later ones first;
2. without each single fault, later ones first;
3. an exact point in place of each time: the nearest ones to where it landed, where that is known;
4. earlier points for each fault: first the same place in an earlier round of the task (the same
   text but for the ordinal), then any. That one point shows a finding says nothing of the next
   (of three windows often only one does), so that halving would miss most: a scan tries at most
   eight places, evenly spread and the earliest first, and the next scan those before the first
   that shows it;
5. fewer items: half of them, and smaller cuts where that is too much.

What was done before a resume (clocks, damage, a change, several runners) never comes to be done
before the first attempt: that would be another start, and no resume of what was begun (`keeps`).

A candidate is always smaller than the smallest one known, is never proposed twice, and has a
fault, as long as the start had one: without a fault it would be the survey, which was judged. Each
one costs a trial, so their number has a bound.

Whether a candidate shows *the same finding* is for the driver to say. A fingerprint holds the
subject, such as the one customer who paid twice; where an earlier point or a smaller input meets
another customer, only kind, operation and diagnosis can still be the same, and whether it took a
resume to show it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from chaoskit.model.behaviours import Behaviour
from chaoskit.model.errors import UsageError
from chaoskit.model.points import Point, TimePoint
from chaoskit.model.schedule import Action, Fault, Schedule, parse_fault

MOST = 200
"""How many candidates are proposed, where nothing else is asked for."""

_PROBES = 8
"""How many places one scan tries."""

_NOWHERE: Mapping[Fault, Point] = {}

Size = tuple[int, int, int, tuple[int, ...], float]

_Asked = Generator["Candidate", None, bool]


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a trial is made of: a schedule, and how many leading items of the input are kept.

    ``take`` is None where all of them are, or where the input is no list.
    """

    schedule: Schedule
    take: int | None = None

    def without_attempts(self, start: int, end: int) -> Candidate:
        """This one without the attempts from index ``start`` up to ``end``."""
        attempts = self.schedule.attempts
        return self._of([*attempts[:start], *attempts[end:]])

    def with_fault(self, attempt: int, index: int, *faults: Fault) -> Candidate:
        """This one with ``faults`` in place of one fault; attempts count from 0 here."""
        attempts = list(self.schedule.attempts)
        there = attempts[attempt]
        attempts[attempt] = (*there[:index], *faults, *there[index + 1 :])
        return self._of(attempts)

    def _of(self, attempts: list[tuple[Fault, ...]]) -> Candidate:
        while attempts and not attempts[-1]:
            attempts.pop()
        return Candidate(Schedule(tuple(attempts)), self.take)


def keeps(start: Schedule, smaller: Schedule) -> bool:
    """Whether nothing that is done before a resume of ``start`` is done before the first attempt of
    ``smaller``. Services may misbehave in any attempt: that is about its requests, not its start.
    """

    def before_it(schedule: Schedule) -> Counter[Action]:
        preludes = (fault.action for fault in schedule.faults_of(1) if fault.is_prelude)
        return Counter(action for action in preludes if not isinstance(action, Behaviour))

    return before_it(smaller) <= before_it(start)


class Shrinker:
    """Proposes candidates, is told of each whether it shows the finding, and knows the smallest.

        shrinker = Shrinker(Candidate(failing))
        while shrinker.proposal is not None:
            shrinker.tell(shows_it(shrinker.proposal))
        shrinker.smallest

    Args:
        start: a candidate that shows the finding.
        orders: ``orders[i]`` are the points that attempt ``i + 1`` passes, in their order: the
            survey's for the first; for later ones only where a trial has told.
        landed: near which exact point a timed fault landed: the last one passed before it.
        items: how many items the input has, if it is a list.
        most: how many candidates are proposed at most.

    Attributes:
        smallest: the smallest candidate known to show the finding; good at any time.
        proposal: what to try next; None at the end.
        cut_off: whether the end came by ``most``, so that there may be a smaller one.
    """

    def __init__(
        self,
        start: Candidate,
        *,
        orders: Sequence[Sequence[Point]] = (),
        landed: Mapping[Fault, Point] = _NOWHERE,
        items: int | None = None,
        most: int = MOST,
    ) -> None:
        self._orders = [
            list(dict.fromkeys(point for point in order if not isinstance(point, TimePoint)))
            for order in orders
        ]
        self._places: list[dict[Point, int]] = [
            {point: place for place, point in enumerate(order)} for order in self._orders
        ]
        self._possible: dict[tuple[int, Action], list[Point]] = {}
        self._landed = landed
        self._items = items
        self._left = most
        self._start = start.schedule
        self._faults_min = min(1, start.schedule.faults)
        self._known = {start}
        self.cut_off = False
        self.smallest = start
        self._search = self._passes()
        self.proposal = next(self._search, None)

    def tell(self, shows: bool) -> None:  # noqa: FBT001 - the answer to the one question
        """Whether the proposal shows the same finding; what is not known, does not.

        Raises:
            ValueError: nothing was proposed.
        """
        if self.proposal is None:
            raise ValueError("there was no proposal to tell of: shrinking has ended")
        if shows:
            self.smallest = self.proposal
        self.proposal = next(self._search, None)

    def size(self, candidate: Candidate) -> Size:
        """What candidates are compared by; the smaller, the better."""
        attempts = candidate.schedule.attempts
        faults = [(n, fault) for n, attempt in enumerate(attempts) for fault in attempt]
        take = self._taken(candidate)
        return (
            len(faults),
            len(attempts),
            sum(isinstance(fault.point, TimePoint) for _, fault in faults),
            tuple(self._place(attempt, fault.point) for attempt, fault in faults),
            math.inf if take is None else take,
        )

    def _passes(self) -> Iterator[Candidate]:
        before = None
        while before != self.smallest:
            before = self.smallest
            yield from self._fewer_attempts()
            yield from self._fewer_faults()
            yield from self._exact_points()
            yield from self._earlier_points()
            yield from self._fewer_items()

    def _ask(self, candidate: Candidate) -> _Asked:
        """Proposes it, if it is new, possible and smaller; whether it is now the smallest."""
        if candidate in self._known or candidate.schedule.faults < self._faults_min:
            return False
        if self.size(candidate) >= self.size(self.smallest):
            return False
        if not keeps(self._start, candidate.schedule):
            return False
        if not self._left:
            self.cut_off = True
            return False
        self._left -= 1
        self._known.add(candidate)
        yield candidate
        return self.smallest == candidate

    def _fewer_attempts(self) -> Iterator[Candidate]:
        together = max(1, len(self.smallest.schedule.attempts) // 2)
        while together:
            end = len(self.smallest.schedule.attempts)
            while end > 0:
                start = max(0, end - together)
                yield from self._ask(self.smallest.without_attempts(start, end))
                end = start
            together //= 2

    def _fewer_faults(self) -> Iterator[Candidate]:
        for attempt, index in reversed(self._positions()):
            yield from self._ask(self.smallest.with_fault(attempt, index))

    def _exact_points(self) -> Iterator[Candidate]:
        for attempt, index in self._positions():
            fault = self._fault(attempt, index)
            if isinstance(fault.point, TimePoint):
                yield from self._first(attempt, index, self._near(attempt, fault))

    def _earlier_points(self) -> Iterator[Candidate]:
        for attempt, index in self._positions():
            for kin in (True, False):
                earlier = self._before(attempt, index, kin=kin)
                yield from self._first(attempt, index, _spread(earlier))

    def _fewer_items(self) -> Iterator[Candidate]:
        take = self._taken(self.smallest) or 0
        cut = take // 2
        while cut:
            if (yield from self._ask(replace(self.smallest, take=take - cut))):
                take -= cut
                cut = min(cut, take // 2)
            else:
                cut //= 2

    def _first(self, attempt: int, index: int, points: Sequence[Point]) -> Iterator[Candidate]:
        """Moves a fault to the first of the ``points`` that shows the finding, if one does."""
        fault = self._fault(attempt, index)
        for point in points:
            moved = replace(fault, point=point)
            if (yield from self._ask(self.smallest.with_fault(attempt, index, moved))):
                return

    def _before(self, attempt: int, index: int, *, kin: bool) -> list[Point]:
        """The points before that of a fault, or those that are the same place in earlier rounds."""
        fault = self._fault(attempt, index)
        if isinstance(fault.point, TimePoint):
            return []
        place, text = self._place(attempt, fault.point), _text(fault.point)
        earlier = [p for p in self._order(attempt, fault) if self._place(attempt, p) < place]
        return [p for p in earlier if not kin or _text(p) == text]

    def _near(self, attempt: int, fault: Fault) -> Sequence[Point]:
        """The exact points nearest to where a timed fault landed; some of all where none knows."""
        order = self._order(attempt, fault)
        point = self._landed.get(fault)
        if point is None or not _can_be(replace(fault, point=point)):
            return _spread(order)
        place = self._place(attempt, point)
        others = sorted(order, key=lambda p: abs(self._place(attempt, p) - place - 0.25))
        return list(dict.fromkeys([point, *others]))[:_PROBES]

    def _positions(self) -> list[tuple[int, int]]:
        attempts = self.smallest.schedule.attempts
        return [(n, index) for n, faults in enumerate(attempts) for index in range(len(faults))]

    def _fault(self, attempt: int, index: int) -> Fault:
        return self.smallest.schedule.attempts[attempt][index]

    def _order(self, attempt: int, fault: Fault) -> Sequence[Point]:
        """The points of an attempt where what the fault does can be done."""
        key = attempt, fault.action
        if key not in self._possible:
            order = self._orders[attempt] if attempt < len(self._orders) else []
            self._possible[key] = [p for p in order if _can_be(replace(fault, point=p))]
        return self._possible[key]

    def _place(self, attempt: int, point: Point) -> int:
        if attempt >= len(self._places):
            return 0
        return self._places[attempt].get(point, len(self._places[attempt]))

    def _taken(self, candidate: Candidate) -> int | None:
        return self._items if candidate.take is None else candidate.take


def _text(point: Point) -> str:
    """The point's text without its ordinal."""
    return re.sub(r"#\d+", "", str(point))


def _can_be(fault: Fault) -> bool:
    """Whether such a fault can take place: not each action can at each point."""
    try:
        parse_fault(str(fault))
    except UsageError:
        return False
    return True


def _spread(points: Sequence[Point]) -> Sequence[Point]:
    """At most eight of the points, evenly spread, in their order: the first and the last too."""
    if len(points) <= _PROBES:
        return points
    return [points[n * (len(points) - 1) // (_PROBES - 1)] for n in range(_PROBES)]
