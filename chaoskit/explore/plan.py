"""Which schedules a campaign runs: the sweep, and the waves of further kills.

Everything here follows from histories and a seed; the same ones give the same plan.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Literal, get_args

import msgspec

from chaoskit.model.actions import Beside, Late, PowerLoss
from chaoskit.model.errors import unknown_name
from chaoskit.model.events import (
    CallSeen,
    Crossed,
    Event,
    RequestReceived,
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
from chaoskit.model.schedule import Fault, Schedule, kill, parse_schedule
from chaoskit.probe.lines import LINE
from chaoskit.trace import MAPPED, RING

Mechanism = Literal["calls", "windows", "crossings", "lines", "times"]

MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)

MEANING: dict[Mechanism, str] = {
    "calls": "before each state-changing system call on the task's own files and sockets, after it "
    "where that can differ from before the next one, inside a write where it crosses a page of its "
    "file; blind to stores into mapped files between two calls",
    "windows": "before, inside and after each request to a service; blind to what happens between "
    "two requests",
    "crossings": "where the task or its runtime calls probe.point; blind to places without one",
    "lines": "before each line of a Python task's own code, and between the calls on one line; "
    "blind to what happens inside a call, such as the writes of a commit",
    "times": "random moments, sampled; most windows are too short to be hit by chance",
}
"""What each mechanism covers and what it misses; every run prints it."""


def window_of(request: RequestReceived, window: Window) -> WindowPoint:
    """A window of this request, as a point."""
    return WindowPoint(request.service, request.operation, request.ordinal, window)


def points(history: History, mechanisms: Sequence[Mechanism], attempt: int = 1) -> list[Point]:
    """Every call, window and crossing of one attempt, in the order in which it passed them."""
    found: dict[Point, None] = {}
    bodies = [e.body for e in history.events if getattr(e.body, "attempt", None) == attempt]
    calls = [body for body in bodies if isinstance(body, CallSeen)]
    notes = {body.what for body in bodies if isinstance(body, TraceNoted)}
    unseen = bool(notes & {MAPPED, RING})  # what changes between two calls
    for body in bodies:
        if isinstance(body, RequestReceived) and "windows" in mechanisms:
            for window in WINDOWS:
                found[window_of(body, window)] = None
        elif isinstance(body, CallSeen) and "calls" in mechanisms:
            found |= dict.fromkeys(_around(body, after=unseen or body is calls[-1]))
        # a task in another language may send any name
        elif (
            isinstance(body, Crossed)
            and ("lines" if body.name.startswith(LINE) else "crossings") in mechanisms
            and re.fullmatch(NAME, body.name)
        ):
            found[CrossingPoint(body.name, body.ordinal)] = None
    return list(found)


def _around(seen: CallSeen, *, after: bool) -> Iterator[CallPoint]:
    """Before a call, inside one that can be torn, and after it where that is a moment of its own.

    After one call and before the next the files are the same; only what was sent may have arrived,
    and other threads may have gone on.
    """
    point = parse_point(seen.call)
    assert isinstance(point, CallPoint)
    yield point
    for cut in seen.cuts:
        yield replace(point, side="short", bytes=cut)
    if seen.sends or not seen.alone or after:
        yield replace(point, side="after")


def power_cuts(history: History, losses: Sequence[PowerLoss]) -> list[Fault]:
    """A loss of power after every call of the first attempt, for each way in which a disk may keep
    what was not synced.
    """
    calls = [parse_point(body.call) for _, body in history.of(CallSeen) if body.attempt == 1]
    return [
        Fault(loss, replace(call, side="after"))
        for call in calls
        if isinstance(call, CallPoint)
        for loss in losses
    ]


def several_processes(known: Iterable[Point]) -> bool:
    """Whether system calls of another process than the first are among the points."""
    whos = {point.who for point in known if isinstance(point, CallPoint)}
    return any(part.startswith("p") for who in whos for part in who.split("."))


def noted(histories: Iterable[History], what: str) -> list[str]:
    """What the tracer noted of one sort (`chaoskit.trace`), each detail once, sorted."""
    return sorted({b.detail for h in histories for _, b in h.of(TraceNoted) if b.what == what})


def late_landings(
    history: History, settled: Sequence[str], ways: Sequence[Late] = (Late(1),)
) -> list[Fault]:
    """A kill with a request in flight that lands later, for every effect that is asked for.

    Args:
        history: an undisturbed run.
        settled: patterns of operations of which the task may rely on that nothing is in flight.
        ways: how late.
    """
    return [
        Fault(way, window_of(body, "received"))
        for _, body in history.requests
        if body.wants is not None
        and not any(fnmatchcase(f"{body.service}.{body.operation}", p) for p in settled)
        for way in ways
    ]


def sweep(
    runs: Sequence[History], mechanisms: Sequence[Mechanism]
) -> tuple[list[Point], list[Point]]:
    """The points that all undisturbed runs pass, in order, and those that only some of them do."""
    calls = _agreed(runs)
    found = [points(_telling(run, calls), mechanisms) for run in runs]
    everywhere = set.intersection(*map(set, found))
    union = dict.fromkeys(point for passed in found for point in passed)
    return [p for p in found[0] if p in everywhere], [p for p in union if p not in everywhere]


def _agreed(runs: Sequence[History]) -> dict[str, CallSeen]:
    """What holds of each call in every run: how much it writes, and whether anything else lives.

    A worker's end, or the length of a time stamp, must not decide which points there are.
    """
    found: dict[str, CallSeen] = {}
    for _, seen in (call for run in runs for call in run.of(CallSeen)):
        known = found.setdefault(seen.call, seen)
        found[seen.call] = msgspec.structs.replace(
            known,
            bytes=min(known.bytes, seen.bytes),
            alone=known.alone and seen.alone,
            cuts=_common(known.cuts, seen.cuts),
        )
    return found


def _common(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """The cuts of a write in two runs. What is before it in the file may be longer in one of them:
    as long as it crosses as many pages, those of the first run stand for the others.
    """
    return one if len(one) == len(other) else tuple(cut for cut in one if cut in other)


def _telling(run: History, calls: Mapping[str, CallSeen]) -> History:
    """The run, with what ``calls`` say."""

    def told(event: Event) -> Event:
        body = event.body
        if not isinstance(body, CallSeen):
            return event
        known = calls[body.call]
        body = msgspec.structs.replace(body, bytes=known.bytes, alone=known.alone, cuts=known.cuts)
        return msgspec.structs.replace(event, body=body)

    return History(tuple(map(told, run.events)))


def moments(seconds: float, number: int, seed: int) -> list[Point]:
    """``number`` different random times, in ms, within the ``seconds`` that a run takes."""
    last = max(1, int(seconds * 1000))
    chosen = random.Random(f"times {seed}").sample(range(1, last + 1), min(number, last))
    return [TimePoint(ms) for ms in sorted(chosen)]


def own_schedules(texts: Sequence[str], surveys: Sequence[History]) -> list[Schedule]:
    """The schedules that a scenario itself asks for.

    Args:
        texts: `Scenario.schedules`.
        surveys: undisturbed runs.

    Raises:
        UsageError: no run passes a window or crossing at which its first attempt is to suffer.
    """
    own = [parse_schedule(text) for text in texts]
    there, odd = sweep(surveys, ("windows", "crossings"))
    for fault in (fault for schedule in own for fault in schedule.faults_of(1)):
        point = fault.point
        if isinstance(point, WindowPoint | CrossingPoint) and point not in (*there, *odd):
            raise unknown_name("point in schedules=", str(point), map(str, there))
    return own


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
    return fault.is_prelude or isinstance(fault.action, Late | Beside)
