"""Faults and schedules: what a trial does to the task, attempt by attempt, as text and as value.

kill@payments.charge#3.applied
kill@payments.charge#3.applied / kill@email.send#1.received     (the second during the resume)
kill-leader@write(out.txt)#2                                    (its children live on)
late:1@payments.charge#3.received                               (lands after the next request)
power:drop@rename(a.tmp->a)#3+after                             (what was not synced is lost)
none                                                            (a survey)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from chaoskit.model.errors import UsageError, unknown_name
from chaoskit.model.points import CallPoint, Point, TimePoint, WindowPoint, parse_point

Action = Literal[
    "kill",
    "kill-leader",
    "late:1",
    "late:2",
    "late:end",
    "power:drop",
    "power:meta",
    "power:data",
]
"""What happens at a point. ``kill``: SIGKILL to every process of the task. ``kill-leader``: to the
first one only. ``late:K``: SIGKILL to all with a request in flight, which lands after the K-th
request that follows (``end``: after the task has ended). ``power:PROFILE``: the machine loses power
after a system call, and its disk keeps what `chaoskit.trial.power` says of that profile."""

ACTIONS: tuple[Action, ...] = get_args(Action)
LATE: tuple[Action, ...] = ("late:1", "late:2", "late:end")
Profile = Literal["drop", "meta", "data"]
"""What a disk keeps when power is lost: of what was not synced, nothing; names and sizes without
the data; or the data, without the names that were not synced in their folder."""

PROFILES: tuple[Profile, ...] = get_args(Profile)
POWER: tuple[Action, ...] = ("power:drop", "power:meta", "power:data")

_ATTEMPTS = " / "
_FAULTS = " + "
_NO_FAULT = "-"
_NOTHING = "none"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is done to the task, at one point."""

    action: Action
    point: Point

    def __str__(self) -> str:
        return f"{self.action}@{self.point}"

    @property
    def is_late(self) -> bool:
        """Whether the request at this point lands after the kill."""
        return self.action in LATE

    @property
    def is_power(self) -> bool:
        """Whether the machine loses power, too."""
        return self.action in POWER

    @property
    def profile(self) -> Profile:
        """What the disk keeps when power is lost.

        Raises:
            ValueError: it is not.
        """
        return next(p for p in PROFILES if self.action == f"power:{p}")

    @property
    def lands_after(self) -> int | None:
        """How many further requests to the service a late one lets pass; None: all."""
        number = self.action.removeprefix("late:")
        return int(number) if number.isdigit() else None


@dataclass(frozen=True, slots=True)
class Schedule:
    """The faults of one trial: ``attempts[i]`` are those of attempt ``i + 1``.

    Attempts after the last one listed run without faults.
    """

    attempts: tuple[tuple[Fault, ...], ...] = ()

    def __str__(self) -> str:
        if not self.attempts:
            return _NOTHING
        return _ATTEMPTS.join(
            _FAULTS.join(map(str, faults)) if faults else _NO_FAULT for faults in self.attempts
        )

    def faults_of(self, attempt: int) -> tuple[Fault, ...]:
        """The faults of ``attempt``, which counts from 1."""
        return self.attempts[attempt - 1] if attempt <= len(self.attempts) else ()

    def then(self, *faults: Fault) -> Schedule:
        """This schedule with one more attempt, which suffers ``faults``."""
        return Schedule((*self.attempts, faults))

    @property
    def kills(self) -> int:
        """How many faults the whole trial has."""
        return sum(map(len, self.attempts))

    @property
    def timed(self) -> bool:
        """Whether any fault hangs on a time, so that it may land elsewhere on another run."""
        return any(isinstance(f.point, TimePoint) for faults in self.attempts for f in faults)


def kill(point: Point) -> Fault:
    """SIGKILL of the whole process tree at ``point``."""
    return Fault("kill", point)


def parse_fault(text: str) -> Fault:
    """The fault that ``text`` names; the inverse of ``str(fault)``.

    Raises:
        UsageError: no ``action@point``, an unknown action, or not a point.
    """
    action, at, point = text.partition("@")
    if not at:
        raise UsageError(f"not a fault: {text!r}; write kill@POINT")
    for known in ACTIONS:
        if known == action:
            return _checked(Fault(known, parse_point(point)))
    raise unknown_name("fault", action, ACTIONS)


def _checked(fault: Fault) -> Fault:
    """``fault``, if it can take place.

    Raises:
        UsageError: what lands late is a request, so its point is one that a service received;
            power is lost after a system call.
    """
    point = fault.point
    if fault.is_late and not (isinstance(point, WindowPoint) and point.window == "received"):
        raise UsageError(
            f"{fault} cannot be done: only a request lands late; "
            f"write {fault.action}@payments.charge#3.received"
        )
    if fault.is_power and not (isinstance(point, CallPoint) and point.side == "after"):
        raise UsageError(
            f"{fault} cannot be done: power is lost after a system call; "
            f"write {fault.action}@write(state.json)#3+after"
        )
    return fault


def parse_schedule(text: str) -> Schedule:
    """The schedule that ``text`` names; the inverse of ``str(schedule)``.

    Raises:
        UsageError: one of its faults does not parse, or it is empty.
    """
    if text.strip() == _NOTHING:
        return Schedule()
    attempts = []
    for part in text.split(_ATTEMPTS):
        stripped = part.strip()
        if not stripped:
            raise UsageError(f"not a schedule: {text!r} has an empty attempt; write - for no fault")
        faults = (
            ()
            if stripped == _NO_FAULT
            else tuple(parse_fault(piece.strip()) for piece in stripped.split(_FAULTS))
        )
        attempts.append(faults)
    return Schedule(tuple(attempts))
