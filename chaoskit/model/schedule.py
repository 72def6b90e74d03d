"""Faults and schedules: what a trial does to the task, attempt by attempt, as text and as value.

kill@payments.charge#3.applied
kill@payments.charge#3.applied / kill@email.send#1.received     (the second during the resume)
kill-leader@write(out.txt)#2                                    (its children live on)
late:1@payments.charge#3.received                               (lands after the next request)
power:drop@rename(a.tmp->a)#3+after                             (what was not synced is lost)
stop:500ms@payments.charge#3.applied                            (SIGTERM, and SIGKILL after 500 ms)
pause@payments.charge#3.applied                                 (meanwhile somebody else resumes)
kill@payments.charge#3.applied / clock:+7d + down:2@payments.*#*
                                                                (done before the resume begins)
none                                                            (a survey)
"""

from __future__ import annotations

from dataclasses import dataclass

from chaoskit.model.actions import (
    AtPoint,
    Beside,
    Copied,
    Kill,
    Kills,
    Late,
    PowerLoss,
    parse_action,
)
from chaoskit.model.errors import UsageError
from chaoskit.model.points import (
    START,
    CallPoint,
    Point,
    StartPoint,
    TimePoint,
    WindowPoint,
    parse_point,
)
from chaoskit.model.preludes import Damage, Prelude, parse_prelude

Action = AtPoint | Prelude

_ATTEMPTS = " / "
_FAULTS = " + "
_NO_FAULT = "-"
_NOTHING = "none"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is done to the task or to its world.

    At a point of the attempt; or before it begins: then ``point`` is `START`, and ``action`` a
    prelude.
    """

    action: Action
    point: Point = START

    def __str__(self) -> str:
        return str(self.action) if self.is_prelude else f"{self.action}@{self.point}"

    @property
    def is_prelude(self) -> bool:
        """Whether it is done before the attempt begins."""
        return isinstance(self.point, StartPoint)

    @property
    def kind(self) -> str:
        """Its action without what is one scenario's own: for counting, and for titles."""
        if isinstance(self.action, Damage):
            return f"damage:{self.action.how}"
        return str(self.action).partition("@")[0].partition(":")[0]


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
    def faults(self) -> int:
        """How many faults the whole trial has."""
        return sum(map(len, self.attempts))

    @property
    def kills(self) -> int:
        """How many of its faults kill the task, with or without anything besides."""
        return sum(isinstance(f.action, Kills) for faults in self.attempts for f in faults)

    @property
    def alone(self) -> Fault | None:
        """The fault of a trial that suffers one, in its first attempt and at a known point; such a
        trial counts as one of that point. None for any other trial.
        """
        if len(self.attempts) != 1 or len(self.attempts[0]) != 1 or self.timed or not self.copied:
            return None
        return self.attempts[0][0]

    @property
    def copied(self) -> bool:
        """Whether the trial can go on from a copy of the world at each of its faults. A copy holds
        what is under way of its own attempt only, so a late request is in the last one.
        """
        late = any(isinstance(f.action, Late) for faults in self.attempts[:-1] for f in faults)
        return not late and all(
            len(faults) == 1 and isinstance(faults[0].action, Copied) for faults in self.attempts
        )

    @property
    def loses_power(self) -> bool:
        """Whether the machine loses power at any of its faults."""
        return any(isinstance(f.action, PowerLoss) for faults in self.attempts for f in faults)

    @property
    def timed(self) -> bool:
        """Whether any fault hangs on a time, so that it may land elsewhere on another run."""
        return any(isinstance(f.point, TimePoint) for faults in self.attempts for f in faults)


def kill(point: Point) -> Fault:
    """SIGKILL of the whole process tree at ``point``."""
    return Fault(Kill(), point)


def before(text: str) -> Fault:
    """What the prelude ``text`` says, done before an attempt begins.

    Raises:
        UsageError: it is no prelude.
    """
    prelude = parse_prelude(text)
    if prelude is None:
        raise UsageError(f"not a prelude: {text!r}; write clock:+7d, damage:torn:GLOB, …")
    return Fault(prelude)


def parse_fault(text: str) -> Fault:
    """The fault that ``text`` names; the inverse of ``str(fault)``.

    Raises:
        UsageError: no ``action@point``, an unknown action, or not a point.
    """
    prelude = parse_prelude(text)
    if prelude is not None:
        return Fault(prelude)
    action, at, point = text.partition("@")
    if not at:
        raise UsageError(
            f"not a fault: {text!r}; write kill@POINT, or what is done before an attempt: "
            "clock:+7d, damage:torn:GLOB, change:NAME, resumers:2"
        )
    return _checked(Fault(parse_action(action), parse_point(point)))


def _checked(fault: Fault) -> Fault:
    """``fault``, if it can take place.

    Raises:
        UsageError: what lands late is a request, so its point is one that a service received;
            power is lost after a system call; a second runner is not started at one, because the
            tracer follows one runner only.
    """
    point = fault.point
    if isinstance(fault.action, Late) and not (
        isinstance(point, WindowPoint) and point.window == "received"
    ):
        raise UsageError(
            f"{fault} cannot be done: only a request lands late; "
            f"write {fault.action}@payments.charge#3.received"
        )
    after_call = isinstance(point, CallPoint) and point.side == "after"
    if isinstance(fault.action, PowerLoss) and not after_call:
        raise UsageError(
            f"{fault} cannot be done: power is lost after a system call; "
            f"write {fault.action}@write(state.json)#3+after"
        )
    if isinstance(fault.action, Beside) and isinstance(point, CallPoint):
        raise UsageError(
            f"{fault} cannot be done: a second runner is not started at a system call; "
            f"write {fault.action}@payments.charge#3.applied"
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
