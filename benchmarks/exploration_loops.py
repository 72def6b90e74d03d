"""The rows of plain loops: start the task cold, kill it, start it again, look at the books.

This is what one writes without chaoskit. Nothing is traced but for the kill, no socket is waited
for, the services are never reset, and a trial is judged by counting charges; there are as many
loops at a time as chaoskit has workers, each with a service of its own.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.exploration_rows import ROOT, Pace, Row, Setting, spread
from benchmarks.exploration_service import REFERENCE, Service, payments, twice
from benchmarks.exploration_timers import expected_trials, stays
from chaoskit.model.history import History

COLD = Path(__file__).with_name("forty_cold.py")
ATTEMPT_TIMEOUT_S = 60

_CALLS = "openat,write,pwrite64,sendto,connect,fsync,fdatasync,ftruncate,fchown,?unlink,?rename"
_CALL = re.compile(r"\d+ +(\w+)\((.*)")

Kill = Callable[[list[str], Mapping[str, str]], bool]
"""Starts a command and kills it somewhere; False: it ended before that."""


def strace_prefixes(setting: Setting, states: float) -> Row:
    """(a) Each call of the task by a cold run that strace kills there, and a cold resume."""
    name = "(a) cold re-runs, loop with strace"
    if shutil.which("strace") is None:
        return Row(name=name, note="not measured: strace is not installed")
    calls = _recorded(setting)
    chosen = spread(calls, setting.sample)
    looped = _loops(setting, [_at_call(call, when) for call, when in chosen])
    return Row(
        name=name,
        trials=len(calls),
        states=states,
        seconds=looped.pace.seconds(len(calls)),
        measured=len(chosen),
        found=looped.found,
        details={"trials_per_second": looped.pace.rate, "missed": looped.missed},
    )


def timers(setting: Setting, surveys: Sequence[History], worlds: Mapping[str, str]) -> list[Row]:
    """(c) Kill cold runs at random moments until 95 % of the crash states, or all, were seen.

    How many trials that takes is computed from how long a recorded run stays in each state (of the
    recorded runs, the one that is kinder to timers); what a trial costs is measured.
    """
    seconds = _undisturbed_s(setting)
    chance = random.Random("moments")
    moments = [chance.uniform(0, seconds) for _ in range(setting.sample)]
    looped = _loops(setting, [_after(moment) for moment in moments])
    recorded = [list(stays(survey, worlds).values()) for survey in surveys]
    rows = []
    for share, words in ((0.95, "95 % of the states"), (1.0, "all states")):
        trials, lengths = min((expected_trials(each, share), each) for each in recorded)
        row = Row(
            name=f"(c) random timers, {words}",
            trials=round(trials),
            states=share * len(lengths),
            seconds=looped.pace.seconds(trials),
            measured=len(moments),
            found=looped.found,
            details={
                "trials_per_second": looped.pace.rate,
                "states": len(lengths),
                "shortest_us": min(lengths),
                "recorded_run_us": sum(lengths),
                "missed": looped.missed,
            },
        )
        rows.append(row)
    return rows


@dataclass(frozen=True, slots=True)
class _Trial:
    """When it ended, whether a step was charged twice, whether the kill came in time."""

    end: float
    twice: bool
    killed: bool


@dataclass(frozen=True, slots=True)
class _Looped:
    pace: Pace
    found: int
    missed: int


def _loops(setting: Setting, kills: Sequence[Kill]) -> _Looped:
    """One trial for each kill, in as many loops as there are jobs."""
    began = time.perf_counter()
    numbers = range(setting.jobs)
    with ThreadPoolExecutor(setting.jobs) as pool:
        parts = pool.map(lambda n: _loop(setting, n, kills[n :: setting.jobs]), numbers)
        trials = [trial for part in parts for trial in part]
    return _Looped(
        Pace.of(began, [trial.end for trial in trials]),
        sum(trial.twice for trial in trials),
        sum(not trial.killed for trial in trials),
    )


def _loop(setting: Setting, number: int, kills: Sequence[Kill]) -> list[_Trial]:
    state = setting.folder / f"loop-{number}"
    with payments() as service:
        return [_trial(setting, service, state, kill) for kill in kills]


def _trial(setting: Setting, service: Service, state: Path, kill: Kill) -> _Trial:
    words, environment = _command(setting, service, state)
    killed = kill(words, environment)
    subprocess.run(words, env=environment, check=True, timeout=ATTEMPT_TIMEOUT_S)
    found = twice(service.taken(), REFERENCE)
    return _Trial(time.perf_counter(), bool(found), killed)


def _command(setting: Setting, service: Service, state: Path) -> tuple[list[str], dict[str, str]]:
    """The task as a command, with an empty work folder."""
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir()
    told = {"CHAOSKIT_PAYMENTS_URL": service.url, "CHAOSKIT_STATE_DIR": str(state)}
    return [sys.executable, str(COLD), setting.journal], os.environ | told


def _at_call(call: str, when: int) -> Kill:
    """SIGKILL before the call takes place; strace counts per kind of call."""

    def kill(words: list[str], environment: Mapping[str, str]) -> bool:
        inject = f"inject={call}:signal=KILL:when={when}"
        strace = ["strace", "-f", "-o", os.devnull, "-e", f"trace={call}", "-e", inject]
        done = subprocess.run(
            [*strace, *words], env=environment, check=False, timeout=ATTEMPT_TIMEOUT_S
        )
        return done.returncode != 0

    return kill


def _after(seconds: float) -> Kill:
    """SIGKILL after so long."""

    def kill(words: list[str], environment: Mapping[str, str]) -> bool:
        process = subprocess.Popen(words, env=environment)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.kill()
        return process.wait() != 0

    return kill


def _undisturbed_s(setting: Setting) -> float:
    """How long a cold run takes by itself: the second one, when everything is in the caches."""
    with payments() as service:
        for _ in range(2):
            words, environment = _command(setting, service, setting.folder / "loop-0")
            began = time.perf_counter()
            subprocess.run(words, env=environment, check=True, timeout=ATTEMPT_TIMEOUT_S)
            seconds = time.perf_counter() - began
    return seconds


def _recorded(setting: Setting) -> list[tuple[str, int]]:
    """Each state-changing call of an undisturbed run: its name, and the how manieth of them it is.

    Counted are all calls of that name, because strace does so, too; listed are those on the task's
    own files and on sockets, and of the opening ones those that can create or truncate.
    """
    state, log = setting.folder / "loop-0", setting.folder / "strace.log"
    strace = ["strace", "-f", "-y", "-o", str(log), "-e", f"trace={_CALLS}"]
    with payments() as service:
        words, environment = _command(setting, service, state)
        subprocess.run(
            [*strace, *words], env=environment, check=True, cwd=ROOT, timeout=ATTEMPT_TIMEOUT_S
        )
    seen: Counter[str] = Counter()
    found = []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        call = _CALL.match(line)
        if call is None:
            continue
        name, rest = call.groups()
        seen[name] += 1
        ours = str(state) in rest or name in {"sendto", "connect"}
        if ours and (name != "openat" or "O_CREAT" in rest or "O_TRUNC" in rest):
            found.append((name, seen[name]))
    return found
