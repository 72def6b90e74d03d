"""Which schedules a campaign runs: the sweep, the sample, and the waves of further kills.

Everything here follows from histories and a seed; the same ones give the same plan.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, get_args

from chaoskit.model.events import Crossed, RequestReceived
from chaoskit.model.history import History
from chaoskit.model.points import NAME, WINDOWS, CrossingPoint, Point, TimePoint, WindowPoint
from chaoskit.model.schedule import Schedule, kill

Mechanism = Literal["windows", "crossings", "times"]

MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)

MEANING: dict[Mechanism, str] = {
    "windows": "before, inside and after each request to a service; blind to what happens between "
    "two requests",
    "crossings": "where the task or its runtime calls probe.point; blind to places without one",
    "times": "random moments, sampled; most windows are too short to be hit by chance",
}
"""What each mechanism covers and what it misses; every run prints it."""


def points(history: History, mechanisms: Sequence[Mechanism], attempt: int = 1) -> list[Point]:
    """Every window and crossing of one attempt, in the order in which it passed them."""
    found: dict[Point, None] = {}
    for event in history.events:
        body = event.body
        if getattr(body, "attempt", None) != attempt:
            continue
        if isinstance(body, RequestReceived) and "windows" in mechanisms:
            for window in WINDOWS:
                found[WindowPoint(body.service, body.operation, body.ordinal, window)] = None
        # a task in another language may send any name
        elif (
            isinstance(body, Crossed)
            and "crossings" in mechanisms
            and re.fullmatch(NAME, body.name)
        ):
            found[CrossingPoint(body.name, body.ordinal)] = None
    return list(found)


def sweep(
    first: History, second: History, mechanisms: Sequence[Mechanism]
) -> tuple[list[Point], list[Point]]:
    """The points that both undisturbed runs pass, in order, and those that only one does."""
    one, two = points(first, mechanisms), points(second, mechanisms)
    both = set(one) & set(two)
    return [p for p in one if p in both], [p for p in (*one, *two) if p not in both]


def moments(seconds: float, number: int, seed: int) -> list[Point]:
    """``number`` different random times, in ms, within the ``seconds`` that a run takes."""
    last = max(1, int(seconds * 1000))
    chosen = random.Random(f"times {seed}").sample(range(1, last + 1), min(number, last))
    return [TimePoint(ms) for ms in sorted(chosen)]


def sample(schedules: Sequence[Schedule], most: int | None, seed: int) -> list[Schedule]:
    """At most ``most`` of the schedules, chosen by seed, in their own order."""
    if most is None or len(schedules) <= most:
        return list(schedules)
    chosen = random.Random(f"sample {seed}").sample(range(len(schedules)), most)
    return [schedules[i] for i in sorted(chosen)]


def first_wave(at: Sequence[Point]) -> list[Schedule]:
    """One kill each."""
    return [Schedule(((kill(point),),)) for point in at]


def next_wave(
    trials: Mapping[Schedule, History], mechanisms: Sequence[Mechanism]
) -> Iterator[Schedule]:
    """Each trial again, with one more kill at every point that its last resume passed."""
    for schedule, history in trials.items():
        resume = len(schedule.attempts) + 1
        if len(history.landed) == schedule.kills:
            for point in points(history, mechanisms, resume):
                yield schedule.then(kill(point))
