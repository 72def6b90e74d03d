"""Who works on a run, and the proof that somebody who did is dead. Age proves nothing.

A process is named by its host, the boot of that host, its pid namespace, its pid and the time at
which it started: the pid alone is given to somebody else sooner or later, in a container at once.
Whether it lives can be judged on its own host and in its own pid namespace only.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_DEAD_STATES = frozenset("ZX")
"""Zombie and dead, as in proc(5): it runs no more, its parent has only not asked for its end."""


class Owner(NamedTuple):
    """One process, so that no other one is taken for it.

    Attributes:
        host: the name of its host.
        boot: the id of that host's boot; empty where the system has none.
        space: its pid namespace; empty where there is only one.
        pid: its number there.
        started: when it started, in the words of the system.
        since: since when it has had the run, in seconds since the epoch.
    """

    host: str
    boot: str
    space: str
    pid: int
    started: str
    since: float

    def text(self) -> str:
        """As the store holds it."""
        return json.dumps(self._asdict(), separators=(",", ":"))

    def __str__(self) -> str:
        at = datetime.fromtimestamp(self.since, tz=UTC)
        return f"process {self.pid} on host {self.host}, since {at:%Y-%m-%d %H:%M:%S} UTC"

    def is_same_process(self, other: Owner) -> bool:
        """Whether both are one process, whenever it took the run."""
        return self._replace(since=0) == other._replace(since=0)


class Life(Enum):
    """What can be said of a process from here."""

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "it lives where this process cannot look"


class Judgement(NamedTuple):
    """Whether a process lives, and what shows it."""

    life: Life
    why: str


def parse_owner(text: str) -> Owner:
    """The owner in the store's words; raises ValueError or TypeError if it is none."""
    return Owner(**json.loads(text))


def this_process(since: float) -> Owner:
    """This process as an owner."""
    pid = os.getpid()
    found = _look_at(pid)
    return Owner(
        host=host_name(),
        boot=boot_id(),
        space=_pid_namespace(),
        pid=pid,
        started=found[0] if found else "",
        since=since,
    )


def judge(owner: Owner) -> Judgement:
    """Whether the process of ``owner`` lives, as far as this process can know."""
    if owner.host != host_name():
        return Judgement(Life.UNKNOWN, f"it is on another host than this one ({host_name()})")
    if owner.boot != boot_id():
        return Judgement(Life.DEAD, "its host has been booted since")
    if owner.space != _pid_namespace():
        return Judgement(Life.UNKNOWN, "it is in another pid namespace (another container)")
    return _judge_here(owner)


def _judge_here(owner: Owner) -> Judgement:
    found = _look_at(owner.pid)
    if found is None:
        return Judgement(Life.DEAD, "it is gone")
    started, state = found
    if started != owner.started:
        return Judgement(Life.DEAD, "its pid belongs to a process that started at another time")
    if state in _DEAD_STATES:
        return Judgement(Life.DEAD, "it is a zombie")
    return Judgement(Life.ALIVE, "it is running")


def host_name() -> str:
    """The name of this host."""
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")


def boot_id() -> str:
    """The id of this boot, drawn anew by Linux each time; empty elsewhere."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _pid_namespace() -> str:
    try:
        return (_PROC / "self/ns/pid").readlink().name
    except OSError:
        return ""


def _look_at(pid: int) -> tuple[str, str] | None:
    """When a process started and its state's letter; None if there is none."""
    if sys.platform == "linux" and (_PROC / "self/stat").exists():
        return _look_at_proc(pid)
    return _look_at_ps(pid)


def _look_at_proc(pid: int) -> tuple[str, str] | None:
    """From proc(5): the fields after the name, which may hold anything but is last closed by ``)``.

    A leader that has ended while other threads of it go on is shown as a zombie too: it lives.
    """
    try:
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        state, started = fields[0], fields[19]
        if state in _DEAD_STATES and len(list((_PROC / str(pid) / "task").iterdir())) > 1:
            state = "S"
    except (OSError, IndexError):
        return None
    return started, state


def _look_at_ps(pid: int) -> tuple[str, str] | None:
    """From ps(1), which POSIX has everywhere; to the second, so that a pid may seem reused late."""
    import subprocess

    asked = ["ps", "-o", "state=", "-o", "lstart=", "-p", str(pid)]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, check=False)
    except OSError:
        return "", "S"  # nobody can be asked: taken for alive, so that nothing runs twice
    state, _, started = answer.stdout.strip().partition(" ")
    return (" ".join(started.split()), state[:1]) if state else None
