"""Which schedules a campaign runs: the sweep, the sample, and the waves of further kills.

Everything here follows from histories and a seed; the same ones give the same plan.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Literal, get_args

from chaoskit.model.errors import unknown_name
from chaoskit.model.events import (
    Body,
    CallSeen,
    Crossed,
    RequestReceived,
    ResumeBounded,
    TraceNoted,
)
from chaoskit.model.history import History
from chaoskit.model.points import (
    NAME,
    WINDOWS,
    CallPoint,
    CrossingPoint,
    Point,
    TimePoint,
    Window,
    WindowPoint,
    parse_point,
)
from chaoskit.model.schedule import Action, Fault, Schedule, kill, parse_schedule
from chaoskit.probe.lines import LINE
from chaoskit.trace import MAPPED

Mechanism = Literal["calls", "windows", "crossings", "lines", "times"]

MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)

MEANING: dict[Mechanism, str] = {
    "calls": "before each state-changing system call on the task's own files and sockets, after it "
    "where that can differ from before the next one, inside large writes; blind to stores into "
    "mapped files between two calls",
    "windows": "before, inside and after each request to a service; blind to what happens between "
    "two requests",
    "crossings": "where the task or its runtime calls probe.point; blind to places without one",
    "lines": "before each line of a Python task's own code, and between the calls on one line; "
    "blind to what happens inside a call, such as the writes of a commit",
    "times": "random moments, sampled; most windows are too short to be hit by chance",
}
"""What each mechanism covers and what it misses; every run prints it."""


PAGE_BYTES = 4096
"""The kernel looks for a fatal signal between the pages of a write, so a larger one can be torn."""

_CUT = frozenset({"write", "pwrite", "sendto"})
"""Calls whose count of bytes the tracer can change."""


def window_of(request: RequestReceived, window: Window) -> WindowPoint:
    """A window of this request, as a point."""
    return WindowPoint(request.service, request.operation, request.ordinal, window)


def points(history: History, mechanisms: Sequence[Mechanism], attempt: int = 1) -> list[Point]:
    """Every call, window and crossing of one attempt, in the order in which it passed them."""
    found: dict[Point, None] = {}
    bodies = _followed(history, attempt)
    calls = [body for body in bodies if isinstance(body, CallSeen)]
    mapped = any(isinstance(body, TraceNoted) and body.what == MAPPED for body in bodies)
    for body in bodies:
        if isinstance(body, RequestReceived) and "windows" in mechanisms:
            for window in WINDOWS:
                found[window_of(body, window)] = None
        elif isinstance(body, CallSeen) and "calls" in mechanisms:
            found |= dict.fromkeys(_around(body, after=mapped or body is calls[-1]))
        # a task in another language may send any name
        elif (
            isinstance(body, Crossed)
            and ("lines" if body.name.startswith(LINE) else "crossings") in mechanisms
            and re.fullmatch(NAME, body.name)
        ):
            found[CrossingPoint(body.name, body.ordinal)] = None
    return list(found)


def _followed(history: History, attempt: int) -> list[Body]:
    """What an attempt was seen to do; not what was only taken for its rest."""
    found: list[Body] = []
    for event in history.events:
        body = event.body
        if getattr(body, "attempt", None) != attempt:
            continue
        if isinstance(body, ResumeBounded):
            break
        found.append(body)
    return found


def _around(seen: CallSeen, *, after: bool) -> Iterator[CallPoint]:
    """Before a call, inside one that can be torn, and after it where that is a moment of its own.

    After one call and before the next the files are the same; only what was sent may have arrived,
    and other threads may have gone on.
    """
    point = parse_point(seen.call)
    assert isinstance(point, CallPoint)
    yield point
    if seen.bytes > PAGE_BYTES and point.call in _CUT:
        for cut in sorted({PAGE_BYTES, seen.bytes // 2, seen.bytes - 1}):
            yield replace(point, side="short", bytes=cut)
    if seen.sends or not seen.alone or after:
        yield replace(point, side="after")


def power_cuts(history: History, profiles: Sequence[Action]) -> list[Fault]:
    """A loss of power after every call of the first attempt, for each way in which a disk may keep
    what was not synced.
    """
    calls = [parse_point(body.call) for _, body in history.of(CallSeen) if body.attempt == 1]
    return [
        Fault(profile, replace(call, side="after"))
        for call in calls
        if isinstance(call, CallPoint)
        for profile in profiles
    ]


def several_processes(known: Iterable[Point]) -> bool:
    """Whether system calls of another process than the first are among the points."""
    whos = {point.who for point in known if isinstance(point, CallPoint)}
    return any(part.startswith("p") for who in whos for part in who.split("."))


def noted(histories: Iterable[History], what: str) -> list[str]:
    """What the tracer noted of one sort (`chaoskit.trace`), each detail once, sorted."""
    return sorted({b.detail for h in histories for _, b in h.of(TraceNoted) if b.what == what})


def late_landings(
    history: History, settled: Sequence[str], actions: Sequence[Action] = ("late:1",)
) -> list[Fault]:
    """A kill with a request in flight that lands later, for every effect that is asked for.

    Args:
        history: an undisturbed run.
        settled: patterns of operations of which the task may rely on that nothing is in flight.
        actions: how late.
    """
    return [
        Fault(action, window_of(body, "received"))
        for _, body in history.requests
        if body.wants is not None
        and not any(fnmatchcase(f"{body.service}.{body.operation}", p) for p in settled)
        for action in actions
    ]


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


def own_schedules(texts: Sequence[str], first: History, second: History) -> list[Schedule]:
    """The schedules that a scenario itself asks for.

    Args:
        texts: `Scenario.schedules`.
        first: an undisturbed run.
        second: another one.

    Raises:
        UsageError: neither run passes a window or crossing at which its first attempt is to suffer.
    """
    own = [parse_schedule(text) for text in texts]
    there, odd = sweep(first, second, ("windows", "crossings"))
    for fault in (fault for schedule in own for fault in schedule.faults_of(1)):
        point = fault.point
        if isinstance(point, WindowPoint | CrossingPoint) and point not in (*there, *odd):
            raise unknown_name("point in schedules=", str(point), map(str, there))
    return own


def sample(schedules: Sequence[Schedule], most: int | None, seed: int) -> list[Schedule]:
    """At most ``most`` of the schedules, chosen by seed, in their own order."""
    if most is None or len(schedules) <= most:
        return list(schedules)
    chosen = random.Random(f"sample {seed}").sample(range(len(schedules)), most)
    return [schedules[i] for i in sorted(chosen)]


def one_each(faults: Iterable[Fault]) -> list[Schedule]:
    """A trial for each fault, which the first attempt suffers."""
    return [Schedule(((fault,),)) for fault in faults]


def first_wave(at: Iterable[Point]) -> list[Schedule]:
    """One kill each."""
    return one_each(map(kill, at))


def next_wave(
    trials: Mapping[Schedule, History], mechanisms: Sequence[Mechanism]
) -> Iterator[Schedule]:
    """Each trial again, with one more kill at every point that its last resume passed.

    Args:
        trials: those that were found right, one for each state from which a resume began: equal
            states have equal resumes. A late landing is not pursued: it is no state; nor is
            another world, or a second runner.
        mechanisms: which points.
    """
    for schedule, history in trials.items():
        if any(_is_no_state(fault) for faults in schedule.attempts for fault in faults):
            continue
        resume = len(schedule.attempts) + 1
        if len(history.landed) == schedule.faults:
            for point in points(history, mechanisms, resume):
                yield schedule.then(kill(point))


def _is_no_state(fault: Fault) -> bool:
    """Whether what a resume finds is more than the files and the services' books."""
    return fault.is_late or fault.is_prelude or fault.is_beside
