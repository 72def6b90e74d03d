"""Classes of trials: those whose faults land at the same kind of moment.

Of each class one trial at least is checked by a real kill, so that a mistake in the copies of the
world that concerns one kind of call, file or request is met. A class is the kind of fault, and the
call and its target (or the operation and its window). Of a large one several are checked, from
different phases of the run.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence

from chaoskit.model.points import CallPoint, CrossingPoint, Point, WindowPoint
from chaoskit.model.schedule import Schedule

_MOST, _EACH = 3, 8
"""Of so many members of a class one more is checked, up to so many in all."""

_DIGITS = re.compile(r"[0-9]+")


def class_of(schedule: Schedule) -> str:
    """The class of a trial, by its last fault, without the phase; empty: it has no fault."""
    faults = [fault for faults in schedule.attempts for fault in faults]
    if not faults:
        return ""
    return f"{len(schedule.attempts)} {faults[-1].kind} {_kind_of(faults[-1].point)}"


def _kind_of(point: Point) -> str:
    """A point without what tells it from others of its kind: ordinals, numbers in names."""
    match point:
        case CallPoint():
            return f"{point.call}({_DIGITS.sub('0', point.target)}) {point.side}"
        case WindowPoint():
            return f"{point.service}.{point.operation} {point.window}"
        case CrossingPoint():
            return _DIGITS.sub("0", point.name)
        case _:
            return "a time"


def unchecked(found: Iterable[tuple[Schedule, bool]]) -> list[Schedule]:
    """One trial of each class of which none was checked.

    Args:
        found: the trials that were found right; and whether a real kill has said so.
    """
    first: dict[str, Schedule] = {}
    checked = set()
    for schedule, real in found:
        name = class_of(schedule)
        first.setdefault(name, schedule)
        if real:
            checked.add(name)
    return [schedule for name, schedule in first.items() if name not in checked]


def representatives(schedules: Sequence[Schedule], seed: int) -> frozenset[Schedule]:
    """Some trials of each class, from each of its phases one, chosen by ``seed``."""
    classes: dict[str, list[Schedule]] = {}
    for schedule in schedules:
        classes.setdefault(class_of(schedule), []).append(schedule)
    chance = random.Random(f"real kills {seed}")
    chosen = set()
    for members in classes.values():
        phases = min(_MOST, 1 + len(members) // _EACH)
        for phase in range(phases):
            first, last = (len(members) * n // phases for n in (phase, phase + 1))
            chosen.add(members[chance.randrange(first, last)])
    return frozenset(chosen)
