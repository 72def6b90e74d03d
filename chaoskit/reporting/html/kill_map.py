"""The kill map: the undisturbed run from left to right, and every point with what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from chaoskit.explore.plan import Mechanism, sweep
from chaoskit.model.actions import Kills, Late, PowerLoss
from chaoskit.model.expectation import Expectation
from chaoskit.model.history import History
from chaoskit.model.points import CallPoint, CrossingPoint, TimePoint, WindowPoint
from chaoskit.model.schedule import Fault, Schedule, kill
from chaoskit.probe.lines import LINE
from chaoskit.reporting.clean import plain
from chaoskit.reporting.html.axis import Axis
from chaoskit.reporting.html.outcomes import FLAKY, INVALID, worst
from chaoskit.reporting.html.packing import Strings
from chaoskit.reporting.html.tape import Tape, tape
from chaoskit.reporting.places import Places

LANES = (
    "calls",
    "windows",
    "crossings",
    "lines",
    "times",
    "late landing",
    "power loss",
    "further kills",
    "other faults",
)
"""The lanes of points, from top to bottom; those without any are left out."""

SPANNING = frozenset({"calls", "windows", "crossings", "lines"})
"""Lanes of plain kills: what lies between two failing neighbours of these fails, too."""

SCALE = 10
"""Places are stored as tenths of a unit."""


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """One place on one lane: ``trials`` are numbers of trials, the worst one first.

    ``name``, ``between`` and ``code`` are numbers of texts, ``kind`` that of a kind of finding.
    """

    lane: int
    x: int
    outcome: int
    kind: int
    name: int
    between: int
    code: int
    trials: tuple[int, ...] = ()


class KillMap(msgspec.Struct, frozen=True):
    """``run`` is the undisturbed run, ``spans`` where plain kills fail, from and to in `SCALE`.

    ``placeless`` trials have a point that the undisturbed run does not pass.
    """

    length: int
    run: Tape
    lanes: list[str]
    marks: list[Mark]
    spans: list[tuple[int, int]]
    placeless: int


@dataclass(frozen=True, slots=True)
class Shown:
    """What the map needs to know of a trial: its number, its schedule, what came of it."""

    number: int
    schedule: Schedule
    outcome: int
    kind: int


@dataclass(slots=True)
class _Spot:
    """One place while it is being filled."""

    fault: Fault
    trials: list[Shown] = field(default_factory=list)


def kill_map(
    survey: tuple[History, History, Expectation] | None,
    mechanisms: Sequence[Mechanism],
    trials: Sequence[Shown],
    places: Places,
    strings: Strings,
) -> KillMap:
    """The map of a campaign.

    Args:
        survey: its undisturbed runs.
        mechanisms: whose points were looked for.
        trials: what was tried.
        places: what lies around a point.
        strings: where the texts go.
    """
    axis = Axis(survey[0] if survey is not None else None)
    spots, placeless = _spots(survey, mechanisms, trials, axis)
    used = {lane for lane, _, _ in spots}
    lanes = [lane for lane in LANES if lane in used]
    marks = [
        _mark(lanes.index(lane), x, spot, places, strings) for (lane, x, _), spot in spots.items()
    ]
    marks.sort(key=lambda mark: (mark.x, mark.lane))
    spanning = [mark for mark in marks if lanes[mark.lane] in SPANNING]
    run = tape(((e.index, e.at_us, e.body) for e in axis.events), strings)
    return KillMap(axis.length, run, lanes, marks, list(spans(spanning)), placeless)


def _spots(
    survey: tuple[History, History, Expectation] | None,
    mechanisms: Sequence[Mechanism],
    trials: Sequence[Shown],
    axis: Axis,
) -> tuple[dict[tuple[str, float, str], _Spot], int]:
    """Every place, tried or not, by lane, place and text; and how many trials have none."""
    spots: dict[tuple[str, float, str], _Spot] = {}
    if survey is not None:
        there, _ = sweep(survey[:2], mechanisms)
        for fault in map(kill, there):
            x = axis.place(fault.point)
            if x is not None:
                spots[_lane(Schedule(((fault,),))), x, str(fault)] = _Spot(fault)
    placeless = 0
    for trial in trials:
        done = first_fault(trial.schedule)
        if done is None:
            continue
        x = 0.0 if done.is_prelude else axis.place(done.point)
        if x is None:
            placeless += 1
            continue
        key = (_lane(trial.schedule), x, str(done))
        spots.setdefault(key, _Spot(done)).trials.append(trial)
    return spots, placeless


def first_fault(schedule: Schedule) -> Fault | None:
    """The first thing that a trial does, of those at a point if there is one."""
    faults = [fault for faults in schedule.attempts for fault in faults]
    return next((f for f in faults if not f.is_prelude), faults[0] if faults else None)


def _lane(schedule: Schedule) -> str:
    faults = [fault for faults in schedule.attempts for fault in faults]
    if not all(isinstance(f.action, Kills) for f in faults):
        return "other faults"
    if len(faults) > 1:
        return "further kills"
    match faults[0].action:
        case Late():
            return "late landing"
        case PowerLoss():
            return "power loss"
        case _:
            return _mechanism(faults[0])


def _mechanism(fault: Fault) -> str:
    point = fault.point
    if isinstance(point, CallPoint):
        return "calls"
    if isinstance(point, WindowPoint):
        return "windows"
    if isinstance(point, CrossingPoint):
        return "lines" if point.name.startswith(LINE) else "crossings"
    return "times" if isinstance(point, TimePoint) else "other faults"


def _mark(lane: int, x: float, spot: _Spot, places: Places, strings: Strings) -> Mark:
    place = places.of(spot.fault)
    found = sorted(spot.trials, key=lambda trial: (-trial.outcome, trial.number))
    return Mark(
        lane=lane,
        x=round(x * SCALE),
        outcome=worst(trial.outcome for trial in found),
        kind=found[0].kind if found else -1,
        name=strings.number(plain(str(spot.fault))),
        between=strings.number(plain(place.between)),
        code=strings.number(plain(place.code)),
        trials=tuple(trial.number for trial in found),
    )


def spans(marks: Sequence[Mark]) -> Iterator[tuple[int, int]]:
    """From where to where plain kills fail: runs of failing marks with no other one between them.

    Args:
        marks: of plain kills, from left to right. One that was not tried proves nothing, and ends
            a run.
    """
    start: int | None = None
    last = 0
    by_place: dict[int, list[int]] = {}
    for mark in marks:
        by_place.setdefault(mark.x, []).append(mark.outcome)
    for x, outcomes in sorted(by_place.items()):
        if worst(outcomes) in {FLAKY, INVALID}:
            start, last = x if start is None else start, x
        elif start is not None:
            yield start, last
            start = None
    if start is not None:
        yield start, last
