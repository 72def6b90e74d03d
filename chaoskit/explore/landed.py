"""What of a schedule took place in a trial, and near which exact points its timed faults landed."""

from __future__ import annotations

import re

from chaoskit.explore.plan import window_of
from chaoskit.model.behaviours import Behaviour
from chaoskit.model.events import CallSeen, Crossed, EffectApplied, ReplySent, RequestReceived
from chaoskit.model.history import History
from chaoskit.model.points import (
    NAME,
    CrossingPoint,
    Point,
    TimePoint,
    parse_point,
)
from chaoskit.model.schedule import Fault, Schedule, parse_fault


def part_that_landed(history: History, schedule: Schedule) -> Schedule:
    """The schedule of those faults that took place: what the trial was, whatever was planned.

    A later fault may find that the task is done; what was run is then a trial of the faults before
    it, complete and as good as any.
    """
    landed = {(body.attempt, body.fault) for _, body in history.landed}
    attempts = [
        tuple(fault for fault in faults if (number, str(fault)) in landed)
        for number, faults in enumerate(schedule.attempts, 1)
    ]
    while attempts and not attempts[-1]:
        attempts.pop()
    return Schedule(tuple(attempts))


def found_nothing(history: History, schedule: Schedule) -> frozenset[str]:
    """The kinds of what is missing from a trial, "damage", "change" and "services", where nothing
    else is: there was no file to damage, the change would have come before its ``after``, or the
    request of a behaviour did not come. Empty: nothing is missing, or something else.
    """
    part = part_that_landed(history, schedule)
    missed = [
        fault
        for number, faults in enumerate(schedule.attempts, 1)
        for fault in faults
        if fault not in part.faults_of(number)
    ]
    kinds = frozenset(
        "services" if isinstance(fault.action, Behaviour) else fault.kind.partition(":")[0]
        for fault in missed
    )
    return kinds if kinds <= {"damage", "change", "services"} else frozenset()


def places_of_times(history: History) -> dict[Fault, Point]:
    """For each timed fault that landed the last exact point that its attempt had passed by then."""
    found: dict[Fault, Point] = {}
    for index, body in history.landed:
        fault = parse_fault(body.fault)
        point = _last_point(history, index, body.attempt)
        if isinstance(fault.point, TimePoint) and point is not None:
            found[fault] = point
    return found


def _last_point(history: History, before: int, attempt: int) -> Point | None:
    requests = {body.request: body for _, body in history.requests if body.attempt == attempt}
    last: Point | None = None
    for event in history.events[:before]:
        match event.body:
            case RequestReceived() as body if body.attempt == attempt:
                last = window_of(body, "received")
            case EffectApplied() as body if body.request in requests:
                last = window_of(requests[body.request], "applied")
            case ReplySent() as body if body.request in requests:
                last = window_of(requests[body.request], "answered")
            case Crossed() as body if body.attempt == attempt and re.fullmatch(NAME, body.name):
                last = CrossingPoint(body.name, body.ordinal)
            case CallSeen() as body if body.attempt == attempt:
                last = parse_point(body.call)
            case _:
                pass
    return last
