"""A sample of schedules, by target and not by number.

Where a database makes a hundred calls and the task writes its own record once, a uniform sample
leaves that one out. So each file and each service has its turn, in it each kind of call, and of
that each phase of the run.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TypeVar

from chaoskit.model.points import CallPoint, CrossingPoint, WindowPoint
from chaoskit.model.schedule import Fault, Schedule

PHASES = 4
"""A run is divided into so many parts of equally many points."""

T = TypeVar("T")


def sample(schedules: Sequence[Schedule], most: int | None, seed: int) -> list[Schedule]:
    """At most ``most`` of the schedules, chosen by seed, in their own order.

    Every target is in it if there are no more of them than that.
    """
    if most is None or len(schedules) <= most:
        return list(schedules)
    rng = random.Random(f"sample {seed}")
    targets: dict[str, dict[str, dict[int, list[int]]]] = {}
    for number in rng.sample(range(len(schedules)), len(schedules)):
        target, way = _sort(schedules[number])
        phases = targets.setdefault(target, {}).setdefault(way, {})
        phases.setdefault(number * PHASES // len(schedules), []).append(number)
    drawn = {
        target: _mixed_turns(rng, [_mixed_turns(rng, parts.values()) for parts in ways.values()])
        for target, ways in targets.items()
    }
    families: dict[str, list[str]] = {}
    for target in rng.sample([*targets], len(targets)):
        families.setdefault(re.sub("[0-9]+", "0", target), []).append(target)
    order = _turns([*families.values()])
    numbers = _turns([drawn[target] for target in order])[:most]
    return [schedules[number] for number in sorted(numbers)]


def draw(stream: Iterable[T], most: int, seed: int) -> tuple[list[T], int]:
    """At most ``most`` of a stream, each of its items equally likely, in their own order; and how
    many items there were. Only what is drawn takes memory.
    """
    rng = random.Random(f"draw {seed}")
    kept: list[tuple[int, T]] = []
    total = 0
    for number, item in enumerate(stream):
        total = number + 1
        if number < most:
            kept.append((number, item))
        elif (place := rng.randrange(total)) < most:
            kept[place] = number, item
    return [item for _, item in sorted(kept, key=lambda pair: pair[0])], total


def target_of(schedule: Schedule) -> str:
    """The file or service at which the last fault of a schedule lands."""
    return _sort(schedule)[0]


def _sort(schedule: Schedule) -> tuple[str, str]:
    """At which target the last fault lands, and what is done there."""
    faults: list[Fault] = [*chain(*schedule.attempts)]
    if not faults:
        return "", ""
    fault = faults[-1]
    match fault.point:
        case CallPoint() as point:
            return point.target, f"{fault.action} {point.call} {point.side}"
        case WindowPoint() as point:
            return point.service, f"{fault.action} {point.operation} {point.window}"
        case CrossingPoint() as point:
            place, _, line = point.name.rpartition(":")
            return place or point.name, f"{fault.action} {line}"
        case _:
            return "", str(fault.action)


def _mixed_turns(rng: random.Random, groups: Iterable[Sequence[T]]) -> list[T]:
    """One of each group after the other, the groups in random order."""
    mixed = [*groups]
    rng.shuffle(mixed)
    return _turns(mixed)


def _turns(groups: Sequence[Sequence[T]]) -> list[T]:
    """The first of each group, then the second of each, and so on."""
    longest = max(map(len, groups), default=0)
    return [group[turn] for turn in range(longest) for group in groups if turn < len(group)]
