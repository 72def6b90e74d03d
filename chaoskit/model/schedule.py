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

import re
from dataclasses import dataclass
from typing import Literal, get_args

from chaoskit.model.errors import UsageError, unknown_name
from chaoskit.model.points import (
    COUNT,
    START,
    CallPoint,
    Point,
    StartPoint,
    TimePoint,
    WindowPoint,
    parse_point,
)
from chaoskit.model.preludes import Prelude, parse_prelude

Action = Literal[
    "kill",
    "kill-leader",
    "late:1",
    "late:2",
    "late:end",
    "power:drop",
    "power:meta",
    "power:data",
    "pause",
    "twin",
]
"""What happens at a point. ``kill``: SIGKILL to every process of the task. ``kill-leader``: to the
first one only. ``late:K``: SIGKILL to all with a request in flight, which lands after the K-th
request that follows (``end``: after the task has ended). ``power:PROFILE``: the machine loses power
after a system call, and its disk keeps what `chaoskit.trial.power` says of that profile.
``pause``: all processes are stopped (SIGSTOP); the next attempt begins beside them and comes to its
end, and then they go on (SIGCONT). ``twin``: a second process of the same attempt is started, and
both go on.

Two more have a number: ``stop:500ms`` sends SIGTERM, as a deploy or an operator does, and SIGKILL
to what is left after 500 ms; ``interrupt:500ms`` the same with SIGINT.
"""

ACTIONS: tuple[Action, ...] = get_args(Action)
LATE: tuple[Action, ...] = ("late:1", "late:2", "late:end")
Profile = Literal["drop", "meta", "data"]
"""What a disk keeps when power is lost: of what was not synced, nothing; names and sizes without
the data; or the data, without the names that were not synced in their folder."""

PROFILES: tuple[Profile, ...] = get_args(Profile)
POWER: tuple[Action, ...] = ("power:drop", "power:meta", "power:data")
BESIDE: tuple[Action, ...] = ("pause", "twin")
"""Two runners at once."""

_STOP = re.compile(rf"(?P<how>stop|interrupt):(?P<ms>{COUNT})ms")
_COPIED = frozenset({"kill", *LATE, *POWER})
_KILLS = _COPIED | {"kill-leader"}
_ATTEMPTS = " / "
_FAULTS = " + "
_NO_FAULT = "-"
_NOTHING = "none"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is done to the task or to its world.

    At a point of the attempt; or (``point`` is `START`) before it begins, and ``action`` is then
    the text of a prelude (`chaoskit.model.preludes`).
    """

    action: str
    point: Point

    def __str__(self) -> str:
        return self.action if self.is_prelude else f"{self.action}@{self.point}"

    @property
    def is_prelude(self) -> bool:
        """Whether it is done before the attempt begins."""
        return isinstance(self.point, StartPoint)

    @property
    def prelude(self) -> Prelude | None:
        """What is done before the attempt begins; None for a fault at a point."""
        return parse_prelude(self.action) if self.is_prelude else None

    @property
    def is_kill(self) -> bool:
        """Whether processes of the task die of it at its point (a stop only asks them to end)."""
        return self.action in _KILLS

    @property
    def is_late(self) -> bool:
        """Whether the request at this point lands after the kill."""
        return self.action in LATE

    @property
    def is_power(self) -> bool:
        """Whether the machine loses power, too."""
        return self.action in POWER

    @property
    def is_beside(self) -> bool:
        """Whether a second runner is started while the first one is there."""
        return self.action in BESIDE

    @property
    def is_copied(self) -> bool:
        """Whether the world that it leaves can be copied at its point, without doing it."""
        return self.action in _COPIED

    @property
    def kind(self) -> str:
        """Its action without what is one scenario's own: for counting, and for titles."""
        word, _, rest = self.action.partition("@")[0].partition(":")
        return f"{word}:{rest.partition(':')[0]}" if word == "damage" else word

    @property
    def grace_ms(self) -> int | None:
        """How long a task that is asked to stop may go on; None: it is not asked."""
        found = _STOP.fullmatch(self.action)
        return int(found["ms"]) if found else None

    @property
    def profile(self) -> Profile:
        """What the disk keeps when power is lost.

        Raises:
            ValueError: it is not.
        """
        for profile in PROFILES:
            if self.action == f"power:{profile}":
                return profile
        raise ValueError(f"{self} is no loss of power")

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
    def faults(self) -> int:
        """How many faults the whole trial has."""
        return sum(map(len, self.attempts))

    @property
    def kills(self) -> int:
        """How many of its faults kill the task, with or without anything besides."""
        return sum(fault.is_kill for faults in self.attempts for fault in faults)

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
        late = any(fault.is_late for faults in self.attempts[:-1] for fault in faults)
        return not late and all(
            len(faults) == 1 and faults[0].is_copied for faults in self.attempts
        )

    @property
    def timed(self) -> bool:
        """Whether any fault hangs on a time, so that it may land elsewhere on another run."""
        return any(isinstance(f.point, TimePoint) for faults in self.attempts for f in faults)


def kill(point: Point) -> Fault:
    """SIGKILL of the whole process tree at ``point``."""
    return Fault("kill", point)


def before(text: str) -> Fault:
    """What the prelude ``text`` says, done before an attempt begins.

    Raises:
        UsageError: it is no prelude.
    """
    prelude = parse_prelude(text)
    if prelude is None:
        raise UsageError(f"not a prelude: {text!r}; write clock:+7d, damage:torn:GLOB, …")
    return Fault(str(prelude), START)


def parse_fault(text: str) -> Fault:
    """The fault that ``text`` names; the inverse of ``str(fault)``.

    Raises:
        UsageError: no ``action@point``, an unknown action, or not a point.
    """
    prelude = parse_prelude(text)
    if prelude is not None:
        return Fault(str(prelude), START)
    action, at, point = text.partition("@")
    if not at:
        raise UsageError(
            f"not a fault: {text!r}; write kill@POINT, or what is done before an attempt: "
            "clock:+7d, damage:torn:GLOB, change:NAME, resumers:2"
        )
    if action in ACTIONS or _STOP.fullmatch(action):
        return _checked(Fault(action, parse_point(point)))
    raise unknown_name("fault", action, (*ACTIONS, "stop:500ms", "interrupt:500ms"))


def _checked(fault: Fault) -> Fault:
    """``fault``, if it can take place.

    Raises:
        UsageError: what lands late is a request, so its point is one that a service received;
            power is lost after a system call; a second runner is not started at one, because the
            tracer follows one runner only.
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
    if fault.is_beside and isinstance(point, CallPoint):
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
