"""The ladder: which mechanisms work here is found out by using them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaoskit.campaign import mechanisms
from chaoskit.explore.plan import MEANING
from chaoskit.model.events import AttemptEnded, Body, Event, FaultLanded
from chaoskit.model.history import History
from chaoskit.trace.abi import this_abi
from chaoskit.trial import ladder
from chaoskit.trial.ladder import PROBES, Rung

DENIED = Path(__file__).resolve().parents[1] / "denied.py"

needs_tracing = pytest.mark.skipif(
    this_abi() is None, reason="system calls are traced on Linux on x86_64 and aarch64 only"
)


@needs_tracing
def test_tracing_works_where_it_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small task is killed between two writes, and nothing of it is left behind."""
    monkeypatch.setattr("chaoskit.trial.workspace.default_root", lambda: tmp_path)
    rung = ladder.tracing()
    assert rung == Rung("calls", True, "a shell was killed before its second write, exactly")
    assert not list(tmp_path.iterdir())


@needs_tracing
@pytest.mark.parametrize("denied", ["ptrace", "filters"])
def test_tracing_does_not_work_where_the_kernel_denies_it(denied: str) -> None:
    """It is not taken to work, and trying it neither hangs nor raises."""
    code = "from chaoskit.trial.ladder import tracing; print(tracing().works)"
    command = [sys.executable, str(DENIED), denied, sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_another_machine_is_told_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no table of calls the reason names the machines that have one."""
    monkeypatch.setattr(ladder, "this_abi", lambda: None)
    monkeypatch.setattr("platform.system", lambda: "Plan 9")
    monkeypatch.setattr("platform.machine", lambda: "mips")
    rung = ladder.tracing()
    assert not rung.works
    assert "needs Linux on aarch64, x86_64; this is Plan 9 on mips" in rung.why


@needs_tracing
def test_without_a_shell_it_cannot_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not tried does not work."""
    monkeypatch.setattr(ladder, "_SHELL", "/nonexistent/sh")
    rung = ladder.tracing()
    assert (rung.works, rung.why) == (False, "cannot be tried out: there is no /nonexistent/sh")


@needs_tracing
def test_a_kill_that_leaves_something_else_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are looked at: a kill that came late or early is no exact kill."""
    monkeypatch.setattr(ladder, "_WRITES", "echo one > a; echo early > b; echo two >> b")
    monkeypatch.setattr(ladder, "_AT", "kill@write(b)#2")
    rung = ladder.tracing()
    assert not rung.works
    monkeypatch.setattr(ladder, "_AT", "kill@write(c)#1")
    assert not ladder.tracing().works


def history(*, landed: bool, said: str) -> History:
    """Of a trial that was or was not killed, and whose resume said this."""
    bodies: list[Body] = [
        *([FaultLanded(1, "kill@x#1")] if landed else []),
        AttemptEnded(attempt=1, how="killed" if landed else "exit", code=9, seconds=0),
        AttemptEnded(attempt=2, how="exit", code=0, seconds=0, output_tail=said),
    ]
    return History(tuple(Event(index, 0, body) for index, body in enumerate(bodies)))


@pytest.mark.parametrize(
    ("landed", "said", "works"),
    [
        (True, "one\na\nb\n", True),
        (True, "one\ntwo\na\nb\n", False),
        (True, "a\nb\n", False),
        (True, "one\na\n", False),
        (True, "one\na\nb\nc\n", False),
        (False, "one\na\nb\n", False),
        (False, "", False),
    ],
)
def test_the_files_decide(*, landed: bool, said: str, works: bool) -> None:
    """The first file whole, the second one empty, no third; and a reason where it is not so."""
    rung = ladder._judged(history(landed=landed, said=said))
    assert rung.works is works
    assert rung.why


def test_every_rung_has_a_name_and_a_reason() -> None:
    """Each probe says what it saw; each mechanism but random times has one, under its name."""
    rungs = [probe() for probe in PROBES]
    assert all(rung.why for rung in rungs)
    names = [rung.name for rung in rungs]
    assert len(set(names)) == len(names)
    assert {"calls", "windows", "lines"} <= set(names)
    assert set(names) & set(MEANING) == {"calls", "windows", "lines"}


@pytest.fixture
def untried() -> Iterator[None]:
    """Nothing is known of this machine yet, and nothing is afterwards."""
    mechanisms.traced.cache_clear()
    yield
    mechanisms.traced.cache_clear()


@pytest.mark.usefixtures("untried")
@pytest.mark.parametrize("works", [True, False])
def test_the_best_is_what_works(monkeypatch: pytest.MonkeyPatch, *, works: bool) -> None:
    """Calls and windows, or what works everywhere; tried out once in a process."""
    tried = []

    def tracing() -> Rung:
        tried.append(1)
        return Rung("calls", works=works, why="it was tried")

    monkeypatch.setattr(mechanisms, "tracing", tracing)
    expected = ("calls", "windows") if works else ("windows", "crossings", "lines")
    assert mechanisms.best() == mechanisms.best() == expected
    assert tried == [1]


def test_slow_work_folders_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without memory to work in the rung does not work, and says where folders are instead."""
    monkeypatch.setattr(ladder, "default_root", lambda: Path(tempfile.gettempdir()))
    rung = ladder.memory()
    assert not rung.works
    assert f"work folders are in {tempfile.gettempdir()}" in rung.why
    assert "slower than memory" in rung.why


@needs_tracing
def test_the_clock_of_a_program_is_moved_and_it_waits() -> None:
    """The rung works where a program is a week ahead, sleeps, and waits."""
    assert ladder.clock() == Rung("clock", True, "a program was a week ahead, slept and waited")


@needs_tracing
@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("import time; print(int(time.time()))", "cannot wait with another clock: nothing"),
        ("import time; print(int(time.time()), flush=True); raise OSError(22)", "cannot wait"),
        ("import time; print(int(time.time()) + 7 * 86400)", "does not move"),
        ("print('no')", "does not move"),
    ],
)
def test_a_program_that_cannot_wait_or_has_the_wrong_time_is_no_working_clock(
    monkeypatch: pytest.MonkeyPatch, program: str, why: str
) -> None:
    """What the program said is what counts, and it stands in the reason."""
    monkeypatch.setattr(ladder, "_WAITS", program)
    rung = ladder.clock()
    assert not rung.works
    assert why in rung.why


@needs_tracing
@pytest.mark.parametrize("denied", ["ptrace", "filters"])
def test_where_nothing_can_be_traced_the_clock_does_not_move(denied: str) -> None:
    """The rung does not work, and says what moves all the same."""
    code = "from chaoskit.trial.ladder import clock; print(clock())"
    command = [sys.executable, str(DENIED), denied, sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "works=False" in done.stdout
    assert "moves the services' clocks and probe.now(), not the program's own" in done.stdout
