"""The ladder of mechanisms: which of them work here, found out by using each.

Nothing degrades silently: what a run falls back to, and what that misses, is printed by the run and
by ``chaoskit doctor``.
"""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chaoskit.model.errors import ChaoskitError
from chaoskit.model.history import History
from chaoskit.model.schedule import Schedule, parse_schedule
from chaoskit.model.token import CommandSpec, Target
from chaoskit.trace.abi import ABIS, this_abi
from chaoskit.trial.conduct import Conduct
from chaoskit.trial.loading import load
from chaoskit.trial.supervisor import Supervisor
from chaoskit.trial.workspace import default_root

_PROBE_TIMEOUT_S = 60.0
_SHELL = "/bin/sh"
_WRITES = "echo one > a; echo two > b; echo three > c"
_LOOKS = "cat a b; ls"
_AT = "kill@write(b)#1"
_LEFT = ["one", "a", "b"]
"""What a kill before the second write leaves: the first file whole, the second one empty."""

_NO_VIEW = (
    "tasks then run in the work folder on the real file system, and what they write elsewhere is "
    "neither put back nor judged"
)
_CLOCK_AT = "clock:+7d"
_AHEAD_S = 7 * 86400
_UNMOVED = "clock:+7d then moves the services' clocks and probe.now(), not the program's own"
_WAITS = """
import subprocess, sys, threading
from time import sleep, time
print(int(time()), flush=True)
sleep(0.01)
print(threading.Event().wait(0.01), flush=True)
condition = threading.Condition()
with condition:
    print(condition.wait(0.01), flush=True)
try:
    words = [sys.executable, "-I", "-S", "-c", "import signal; signal.pause()"]
    subprocess.run(words, timeout=0.01)
except subprocess.TimeoutExpired:
    print("late", flush=True)
"""
"""A program that asks for the time, sleeps, and waits in the ways that a clock could spoil."""


@dataclass(frozen=True, slots=True)
class Rung:
    """One mechanism on this machine.

    Args:
        name: as in ``--mechanisms``, or what else it is.
        works: whether it does here.
        why: what was seen, or why it does not.
    """

    name: str
    works: bool
    why: str


def tracing() -> Rung:
    """Whether a task can be killed at a call: a small one is, and its files are looked at."""
    if this_abi() is None:
        known = ", ".join(sorted(ABIS))
        where = f"{platform.system()} on {platform.machine()}"
        return Rung("calls", works=False, why=f"needs Linux on {known}; this is {where}")
    if not os.access(_SHELL, os.X_OK):
        return Rung("calls", works=False, why=f"cannot be tried out: there is no {_SHELL}")
    try:
        history = asyncio.run(_killed_at_a_write())
    except (ChaoskitError, OSError) as broken:
        return Rung("calls", works=False, why=str(broken))
    return _judged(history)


def _judged(history: History) -> Rung:
    said = history.last.output_tail.split()
    if not history.landed:
        return Rung("calls", works=False, why=" ".join(said) or "the kill did not land")
    if said != _LEFT:
        return Rung("calls", works=False, why=f"a kill before a write left {said}, not {_LEFT}")
    return Rung("calls", works=True, why="a shell was killed before its second write, exactly")


async def _killed_at_a_write() -> History:
    spec = CommandSpec(
        command=(_SHELL, "-c", _WRITES),
        resume=(_SHELL, "-c", _LOOKS),
        env={"PATH": os.defpath},  # cat and ls are there, whatever the user's PATH is
    )
    async with Supervisor(load(Target(command=spec)), seed=0) as supervisor:
        supervisor.conduct = Conduct(timeout_s=_PROBE_TIMEOUT_S)
        return await supervisor.run(parse_schedule(_AT))


def windows() -> Rung:
    """Service windows need a process that can be killed, and no more."""
    if not hasattr(os, "fork"):
        return Rung("windows", works=False, why=f"tasks cannot be killed on {sys.platform}")
    return Rung("windows", works=True, why="the services run in chaoskit itself")


def memory() -> Rung:
    """Where work folders are."""
    root = default_root()
    free = shutil.disk_usage(root).free >> 20
    fast = root == Path("/dev/shm")  # noqa: S108 - a question, not a file
    why = f"work folders are in {root}, {free} MiB free" + ("" if fast else "; slower than memory")
    return Rung("memory", works=fast, why=why)


def view() -> Rung:
    """Whether a task can run in a copy-on-write view of the file system: a file that one writes to
    the folder for temporary files must not be there afterwards.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "written")
        spec = CommandSpec(command=(_SHELL, "-c", 'echo one > "$0" && cat "$0"', str(file)))
        try:
            told, why = asyncio.run(_ran(spec))
        except (ChaoskitError, OSError) as broken:
            return Rung("view", works=False, why=str(broken))
        if why:
            return Rung("view", works=False, why=f"{why}; {_NO_VIEW}")
        if told.last.output_tail.split() != ["one"] or file.exists():
            said = "a file that a task wrote is really there, or is not there for the task"
            return Rung("view", works=False, why=said)
    return Rung("view", works=True, why="a task wrote a file, and it is not really there")


async def _ran(spec: CommandSpec) -> tuple[History, str]:
    async with Supervisor(load(Target(command=spec)), seed=0) as supervisor:
        supervisor.conduct = Conduct(timeout_s=_PROBE_TIMEOUT_S)
        return await supervisor.run(Schedule()), supervisor.no_view


def strace() -> Rung:
    """What the tests check the tracer against; no run uses it."""
    found = shutil.which("strace")
    return Rung("strace", works=found is not None, why=found or "not installed; only tests use it")


def lines() -> Rung:
    """Line events of a Python task, which need nothing of the system."""
    return Rung("lines", works=True, why="for Python tasks, by the interpreter's own events")


def clock() -> Rung:
    """Whether the clock of an unmodified program can be moved, and whether it then still waits."""
    before = int(time.time())
    try:
        history = asyncio.run(_a_week_ahead())
    except (ChaoskitError, OSError) as broken:
        return Rung("clock", works=False, why=f"{broken}; {_UNMOVED}")
    told, *waited = history.last.output_tail.split() or [""]
    if not told.isdigit() or not before <= int(told) - _AHEAD_S <= int(time.time()):
        return Rung("clock", works=False, why=f"a program's does not move; {_UNMOVED}")
    if waited != ["False", "False", "late"]:
        said = " ".join(waited) or "nothing"
        return Rung("clock", works=False, why=f"a program cannot wait with another clock: {said}")
    return Rung("clock", works=True, why="a program was a week ahead, slept and waited")


async def _a_week_ahead() -> History:
    words = (sys.executable, "-I", "-S", "-c", _WAITS)
    spec = CommandSpec(command=words)
    async with Supervisor(load(Target(command=spec)), seed=0) as supervisor:
        supervisor.conduct = Conduct(timeout_s=_PROBE_TIMEOUT_S)
        return await supervisor.run(parse_schedule(_CLOCK_AT))


PROBES: tuple[Callable[[], Rung], ...] = (tracing, view, windows, lines, clock, memory, strace)
