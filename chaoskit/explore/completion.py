"""Which step is complete at which point of an undisturbed run, because the task has recorded it.

After the answer to a request for an effect a task writes down that it is done. From the last such
call on, until it asks for the next effect, it can know that this one is complete: so does whoever
kills it there. A sync records nothing new, and what is written to a service is no file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

import msgspec

from chaoskit.explore.plan import window_of
from chaoskit.model.effects import Identity
from chaoskit.model.events import Body, CallSeen, Crossed, ReplySent, RequestReceived
from chaoskit.model.expectation import Expectation, FileRecord, Recorded
from chaoskit.model.history import History
from chaoskit.model.points import WINDOWS, CallPoint, CrossingPoint, Point, parse_point
from chaoskit.trace.abi import SYNCS


@dataclass(slots=True)
class _Part:
    """What a run does between its request for one effect and that for the next.

    ``sender`` is the process that asked. ``records`` are the calls on files since the answer, syncs
    left out; ``after`` the points that it passes once the last of these is done.
    """

    asked: RequestReceived
    sender: str = ""
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
        elif ":" not in point.target and self._is_by_who_knows(point):
            self.records.append(point)
            self.after = [after]

    def _is_by_who_knows(self, call: CallPoint) -> bool:
        """Whether the process that asked makes the call, or one above it, which may wait for it."""
        return call.who in ("", self.sender) or self.sender.startswith(f"{call.who}.")

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
        One that holds what all runs agree on. Nothing where requests overlap, or where the task
        reports its steps, which says more.
    """
    if not expectation.ordered or expectation.steps or expectation.problems:
        return expectation
    first, *others = (_recorded(run, expectation) for run in runs)
    agreed = {
        point: step
        for point, step in first.items()
        if all(point in other and other[point].number == step.number for other in others)
    }
    children = [_by_children(run, expectation) for run in runs]
    return msgspec.structs.replace(
        expectation,
        recorded=agreed,
        files=_same_files([_files(run, expectation) for run in runs]),
        by_children=tuple(step for step in children[0] if all(step in some for some in children)),
    )


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
    sender = ""
    for event in run.events:
        body = event.body
        if isinstance(body, CallSeen) and body.sends:
            sender = _who(body)
        if isinstance(body, RequestReceived) and body.wants is not None:
            parts.append(_Part(body, sender))
        else:
            (parts[-1] if parts else before).take(body)
    return before.names, parts


def _by_children(run: History, expectation: Expectation) -> list[Identity]:
    """The steps that a child of the task does, and of which it writes a record: after the answer,
    in a file that no process had touched before.
    """
    touched: set[str] = set()
    found = []
    _, parts = _parts(run)
    number = 0
    for event in run.events:
        body = event.body
        if isinstance(body, RequestReceived) and body.wants is not None:
            number += 1
        elif isinstance(body, CallSeen) and not body.sends:
            part = parts[number - 1] if number else None
            point = parse_point(body.call)
            assert isinstance(point, CallPoint)
            new = set(point.target.split("->")) - touched
            touched |= new
            own = part is not None and part.sender != "" and point.who == part.sender
            if part is not None and own and new and part.answered and point in part.records:
                assert part.asked.wants is not None
                found.append(expectation.identify(part.asked.wants))
    return list(dict.fromkeys(found))


def _who(seen: CallSeen) -> str:
    point = parse_point(seen.call)
    return point.who if isinstance(point, CallPoint) else ""


def _files(run: History, expectation: Expectation) -> list[FileRecord]:
    """What each file records that the scenario names: the steps that were answered before the last
    call on it, and after the last one on the file before.
    """
    sizes = run.records.get(1, {})
    answered: list[Identity] = []
    wants = {body.request: body.wants for _, body in run.requests}
    complete: dict[str, int] = {}
    for event in run.events:
        body = event.body
        if isinstance(body, ReplySent) and body.good and (effect := wants.get(body.request)):
            answered.append(expectation.identify(effect))
        elif isinstance(body, CallSeen) and not body.sends:
            target = body.call.partition("(")[2].rpartition(")")[0]
            name = unquote(target.rpartition("->")[2] or target)
            if name in sizes:
                complete.pop(name, None)
                complete[name] = len(answered)
    found = []
    begin = 0
    for name, end in complete.items():
        found.append(FileRecord(name, sizes[name], tuple(answered[begin:end])))
        begin = max(begin, end)
    return [record for record in found if record.steps]


def _same_files(runs: Sequence[Sequence[FileRecord]]) -> tuple[FileRecord, ...]:
    """What all runs say alike of a file, with the smallest size that one of them left."""
    first, *others = ({record.file: record for record in run} for run in runs)
    found = []
    for name, record in first.items():
        same = [other[name] for other in others if name in other]
        if len(same) == len(others) and all(one.steps == record.steps for one in same):
            least = min(one.bytes for one in (record, *same))
            found.append(msgspec.structs.replace(record, bytes=least))
    return tuple(found)


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
