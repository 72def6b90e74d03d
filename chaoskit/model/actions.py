"""Actions: what is done to a task at a point, as values; their texts are the words of a schedule.

kill            SIGKILL to every process of the task
kill-leader     SIGKILL to the first process only; its children live on
late:1          SIGKILL to all with a request in flight, which lands after the next request
                (late:2 after the second one that follows, late:end after the task has ended)
power:drop      the machine loses power after a system call; see `Profile`
stop:500ms      SIGTERM, as a deploy or an operator sends it, and SIGKILL to what is left 500 ms
                later; interrupt:500ms is the same with SIGINT
pause           all processes are stopped (SIGSTOP); the next attempt begins beside them and comes
                to its end, and then they go on (SIGCONT)
twin            a second process of the same attempt is started, and both go on
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from chaoskit.model.errors import unknown_name
from chaoskit.model.points import COUNT

Profile = Literal["drop", "meta", "data"]
"""What a disk keeps when power is lost: of what was not synced, nothing; names and sizes without
the data; or the data, without the names that were not synced in their folder."""

PROFILES: tuple[Profile, ...] = get_args(Profile)


@dataclass(frozen=True, slots=True)
class Kill:
    """SIGKILL to every process of the task."""

    def __str__(self) -> str:
        return "kill"


@dataclass(frozen=True, slots=True)
class KillLeader:
    """SIGKILL to the task's first process; its children live on."""

    def __str__(self) -> str:
        return "kill-leader"


@dataclass(frozen=True, slots=True)
class Late:
    """SIGKILL to all with a request in flight, which lands after ``after`` further requests to its
    service; None: after the task has ended.
    """

    after: int | None

    def __str__(self) -> str:
        return f"late:{'end' if self.after is None else self.after}"


@dataclass(frozen=True, slots=True)
class PowerLoss:
    """The machine loses power, and its disk keeps what ``profile`` says."""

    profile: Profile

    def __str__(self) -> str:
        return f"power:{self.profile}"


@dataclass(frozen=True, slots=True)
class Stop:
    """The task is asked to end, and killed ``grace_ms`` milliseconds later if it has not.

    ``asked``: ``stop`` is SIGTERM, ``interrupt`` is SIGINT.
    """

    asked: Literal["stop", "interrupt"]
    grace_ms: int

    def __str__(self) -> str:
        return f"{self.asked}:{self.grace_ms}ms"


@dataclass(frozen=True, slots=True)
class Pause:
    """The task stands still while the next attempt begins and ends, and then goes on."""

    def __str__(self) -> str:
        return "pause"


@dataclass(frozen=True, slots=True)
class Twin:
    """A second process of the same attempt is started, and both go on."""

    def __str__(self) -> str:
        return "twin"


AtPoint = Kill | KillLeader | Late | PowerLoss | Stop | Pause | Twin

Copied = Kill | Late | PowerLoss
"""The world that they leave can be copied at their point, without doing them."""

Interruptions = Kill | KillLeader | Late | Stop
"""The task is ended, and nothing else: what it finds when it resumes is what it left."""

Kills = Copied | KillLeader
"""Processes of the task die of them at their point (a stop only asks them to end)."""

Beside = Pause | Twin
"""A second runner is started while the first one is there."""

Lateness = Literal["late:1", "late:2", "late:end"]

LATE: Mapping[Lateness, Late] = {"late:1": Late(1), "late:2": Late(2), "late:end": Late(None)}
POWER: tuple[PowerLoss, ...] = tuple(map(PowerLoss, PROFILES))

_ALL: tuple[AtPoint, ...] = (Kill(), KillLeader(), *LATE.values(), *POWER, Pause(), Twin())
_PLAIN: Mapping[str, AtPoint] = {str(action): action for action in _ALL}
_STOP = re.compile(rf"(?P<asked>stop|interrupt):(?P<ms>{COUNT})ms")


def parse_action(text: str) -> AtPoint:
    """The action that ``text`` names; the inverse of ``str(action)``.

    Raises:
        UsageError: there is no such action.
    """
    if (plain := _PLAIN.get(text)) is not None:
        return plain
    if (found := _STOP.fullmatch(text)) is not None:
        return Stop("stop" if found["asked"] == "stop" else "interrupt", int(found["ms"]))
    raise unknown_name("fault", text, (*_PLAIN, "stop:500ms", "interrupt:500ms"))
