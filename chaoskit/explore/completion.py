"""Which step is complete at which point of an undisturbed run, because the task has recorded it.

After the answer to a request for an effect a task writes down that it is done. From the last such
call on, until it asks for the next effect, it can know that this one is complete: so does whoever
kills it there. A sync records nothing new, and what is written to a service is no file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import msgspec

from chaoskit.explore.plan import window_of
from chaoskit.model.events import Body, CallSeen, Crossed, ReplySent, RequestReceived
from chaoskit.model.expectation import Expectation, Recorded
from chaoskit.model.history import History
from chaoskit.model.points import WINDOWS, CallPoint, CrossingPoint, Point, parse_point
from chaoskit.trace.abi import SYNCS


@dataclass(slots=True)
class _Part:
    """What a run does between its request for one effect and that for the next.

    ``records`` are its calls on files, syncs left out; ``after`` the points that it passes once the
    last of these is done.
    """

    asked: RequestReceived
    answered: bool = False
    records: list[CallPoint] = field(default_factory=list)
    after: list[Point] = field(default_factory=list)

    def take(self, body: Body) -> None:
        """One more event of this part."""
        if isinstance(body, ReplySent) and body.request == self.asked.request:
            self.answered = body.good
            self.records, self.after = [], []  # what it wrote before is no record of the end
        elif isinstance(body, CallSeen):
            self._call(body)
        elif isinstance(body, RequestReceived):  # a look
            self.after += (window_of(body, window) for window in WINDOWS)
        elif isinstance(body, Crossed):
            self.after.append(CrossingPoint(body.name, body.ordinal))

    def _call(self, seen: CallSeen) -> None:
        point = parse_point(seen.call)
        assert isinstance(point, CallPoint)
        after = replace(point, side="after")
        if seen.sends or point.call in SYNCS:
            self.after += (point, after)
        elif ":" not in point.target:  # not the files of a service
            self.records.append(point)
            self.after = [after]

    def settled(self, *, alone: bool) -> list[Point]:
        """Its points at which the last record is certain to be there: where other threads or
        processes take turns, those of the process that wrote it.
        """
        who = self.records[-1].who
        return [
            point
            for point in self.after
            if alone or (isinstance(point, CallPoint) and point.who == who)
        ]

    @property
    def names(self) -> set[str]:
        """Its files, numbers left out: a marker for each step counts as one file."""
        return {_unnumbered(name) for call in self.records for name in call.target.split("->")}


def with_records(expectation: Expectation, runs: Sequence[History]) -> Expectation:
    """``expectation`` with what ``runs`` teach of when a step is complete.

    Args:
        expectation: what the same runs taught before.
        runs: undisturbed ones, with the names that points keep.

    Returns:
        One in which `Expectation.recorded` holds those points on which all runs agree. Nothing
        where requests overlap, or where the task reports its steps, which says more.
    """
    if not expectation.ordered or expectation.steps or expectation.problems:
        return expectation
    first, *others = (_recorded(run, expectation) for run in runs)
    agreed = {
        point: step
        for point, step in first.items()
        if all(point in other and other[point].number == step.number for other in others)
    }
    return msgspec.structs.replace(expectation, recorded=agreed)


def _recorded(run: History, expectation: Expectation) -> dict[str, Recorded]:
    """By point, the step that a run had just recorded when it came there."""
    before, parts = _parts(run)
    found: dict[str, Recorded] = {}
    for number, part in enumerate(parts, 1):
        if not part.answered or not part.records:
            continue
        last = number == len(parts)
        if last and not _records_the_last(before, parts):
            continue
        assert part.asked.wants is not None
        identity = expectation.identify(part.asked.wants)
        step = Recorded(number, identity, str(part.records[-1]), last=last)
        found |= {str(point): step for point in part.settled(alone=_alone(run))}
    return found


def _parts(run: History) -> tuple[set[str], list[_Part]]:
    """The files that a run changes before its first request for an effect, and its parts."""
    parts: list[_Part] = []
    before = _Part(RequestReceived(attempt=1, request=0, service="", operation="", ordinal=0))
    for event in run.events:
        body = event.body
        if isinstance(body, RequestReceived) and body.wants is not None:
            parts.append(_Part(body))
        else:
            (parts[-1] if parts else before).take(body)
    return before.names, parts


def _records_the_last(before: set[str], parts: Sequence[_Part]) -> bool:
    """Whether what a run writes after its last effect is a record of it.

    It is where it changes whatever it changes after each of the others. After an only one it is
    where nothing else could be the record: a task that writes down what it is about to do knows
    only of those that came before.
    """
    *others, last = parts
    if others:
        return set.intersection(*(part.names for part in others)) <= last.names
    return not before or bool(before & last.names)


def _alone(run: History) -> bool:
    return all(body.alone for _, body in run.of(CallSeen))


def _unnumbered(name: str) -> str:
    return re.sub(r"[0-9]+", "#", name)
