"""An exploration that is killed itself leaves nothing: no process, no traced task, no folder."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from chaoskit.campaign.folder import find_run
from chaoskit.campaign.store import Store
from chaoskit.trace.abi import this_abi
from tests.gates import arrive, let_go

pytestmark = pytest.mark.skipif(
    this_abi() is None, reason="system calls are traced on Linux on x86_64 and aarch64 only"
)

PR_SET_CHILD_SUBREAPER = 36

WAIT_S = 300
"""Far more than a launcher needs to clear up, on however busy a machine."""

SCENARIO = """
import os, signal
from chaoskit import Scenario
from forty_steps import _charge, _with_http_client

def main():
    ask = _with_http_client(os.environ["CHAOSKIT_PAYMENTS_URL"])
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    for n in range(4):
        if not os.path.exists(f"done-{n}"):
            _charge(ask, n, keyed=True)
            open(f"done-{n}", "w").close()
        if n == 1:
            with open(os.environ["GATE"], "rb", buffering=0) as gate:
                gate.read(1)  # until the test lets this attempt go on
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)

scenario = Scenario(task=main, services=("payments",), env={"GATE": "GATE_PATH"})
"""

SURVEYS = 2
"""Attempts before the one that is recorded: the undisturbed runs."""


class Exploration:
    """A running ``chaoskit run``; its attempts stop at a gate, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.work, self._runs = folder / "work", folder / "runs"
        self.work.mkdir()
        self._gate = folder / "gate"
        os.mkfifo(self._gate)
        exact = Path(__file__).resolve().parents[2] / "scenarios" / "exact"
        head = f"import sys\nsys.path.insert(0, {str(exact)!r})\n"
        (folder / "task.py").write_text(head + SCENARIO.replace("GATE_PATH", str(self._gate)))
        words = [sys.executable, "-m", "chaoskit.cli.main", "run", str(folder / "task.py")]
        words += ["--mechanisms", "calls", "--jobs", "1", "--runs", str(self._runs), "-q"]
        self._log = (folder / "log").open("w+")
        self.process = subprocess.Popen(
            [*words, "--work-dir", str(self.work)],
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        threading.Thread(target=self._open_at_the_end, daemon=True).start()

    def await_one(self) -> int:
        """Wait until one more attempt stands at the gate; what closing opens it."""
        number = arrive(self._gate)
        assert self.process.poll() is None, "the exploration ended by itself"
        return number

    def let_pass(self, attempts: int) -> None:
        """Wait until so many attempts have come to the gate, and open it for each of them."""
        for _ in range(attempts):
            let_go(self.await_one())

    def _open_at_the_end(self) -> None:
        """Nobody is to wait at the gate for an exploration that has ended."""
        self.process.wait()
        with suppress(OSError):
            os.close(os.open(self._gate, os.O_RDONLY | os.O_NONBLOCK))

    def surveyed(self) -> bool:
        """Whether the undisturbed runs are behind it."""
        with Store(find_run(self._runs, "latest")) as store:
            return store.survey() is not None

    def tree(self) -> list[psutil.Process]:
        """Every process of the exploration, and of the task that it is running."""
        main = psutil.Process(self.process.pid)
        return [main, *main.children(recursive=True)]

    def said(self) -> str:
        """All that it has printed, without empty lines."""
        self._log.seek(0)
        return "\n".join(filter(None, self._log.read().splitlines()))

    def close(self) -> None:
        """Whatever a failed test has left."""
        for process in self.tree() if self.process.poll() is None else []:
            with suppress(psutil.Error):
                process.kill()
        self.process.wait()
        self._log.close()


@pytest.fixture
def exploration(tmp_path: Path) -> Iterator[Exploration]:
    """One that has begun; it is gone at the end.

    Its orphans come to us: a container's first process may not look after the dead for long.
    """
    adopt = ctypes.CDLL(None).prctl
    adopt(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    started = Exploration(tmp_path)
    yield started
    started.close()
    adopt(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def kill_main(exploration: Exploration) -> None:
    """SIGKILL to the command's own process alone."""
    exploration.process.kill()


def kill_group(exploration: Exploration) -> None:
    """SIGKILL to everything in the command's process group, as a closing terminal may do."""
    os.killpg(exploration.process.pid, signal.SIGKILL)


RECORDED, RESUMED = SURVEYS, SURVEYS + 3
"""How many attempts have passed when the one that is recorded, or a resume, comes to the gate."""


@pytest.mark.parametrize(
    ("passed", "kill", "moving"),
    [
        (RECORDED, kill_main, True),
        (RECORDED, kill_group, False),
        (RESUMED, kill_main, False),
        (RESUMED, kill_group, True),
    ],
    ids=["recording-main", "recording-group", "resume-main", "resume-group"],
)
def test_an_exploration_that_is_killed_leaves_nothing(
    exploration: Exploration, passed: int, kill: Callable[[Exploration], None], *, moving: bool
) -> None:
    """While the task waits, or while it goes from stop to stop: all of the tree ends by itself."""
    exploration.let_pass(passed)
    gate = exploration.await_one()
    assert exploration.surveyed()
    tree = exploration.tree()
    assert len(tree) >= 5, "the command, its worker, the launcher, the task and its child"
    (folder,) = exploration.work.iterdir()
    if moving:
        os.close(gate)
    kill(exploration)
    exploration.process.wait()
    _, alive = psutil.wait_procs(tree[1:], WAIT_S)
    assert [(process.pid, process.status()) for process in alive] == []
    assert not folder.exists()
    assert list(exploration.work.iterdir()) == []
    assert [process.pid for process in psutil.process_iter() if belongs(process, folder)] == []
    if not moving:
        os.close(gate)


def interrupt(exploration: Exploration) -> None:
    """Ctrl-C in a terminal."""
    os.killpg(exploration.process.pid, signal.SIGINT)


def interrupt_thrice(exploration: Exploration) -> None:
    """Ctrl-C by somebody who does not want to wait."""
    for _ in range(3):
        with suppress(ProcessLookupError):
            os.killpg(exploration.process.pid, signal.SIGINT)


def stop_main(exploration: Exploration) -> None:
    """SIGTERM to the command's own process, as an operator sends it."""
    exploration.process.terminate()


def hang_up(exploration: Exploration) -> None:
    """SIGHUP to the group: the terminal is closed."""
    os.killpg(exploration.process.pid, signal.SIGHUP)


@pytest.mark.skipif(
    signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, reason="started by nohup: not to be ended"
)
@pytest.mark.parametrize(
    ("end", "code"),
    [(interrupt, 130), (interrupt_thrice, 130), (stop_main, 143), (hang_up, 129)],
)
def test_an_interrupted_exploration_says_so_in_a_line_and_leaves_nothing(
    exploration: Exploration, end: Callable[[Exploration], None], code: int
) -> None:
    """With the signal's exit code, however often it comes; no traceback, also not of a worker."""
    exploration.let_pass(1)
    gate = exploration.await_one()
    tree = exploration.tree()
    end(exploration)
    assert exploration.process.wait() == code, exploration.said()
    lines = exploration.said().splitlines()
    assert lines[-1] == "interrupted; a campaign goes on when the same command is given again"
    assert len(lines) <= 2, "the first line says what is run"
    _, alive = psutil.wait_procs(tree[1:], WAIT_S)
    assert [(process.pid, process.status()) for process in alive] == []
    assert list(exploration.work.iterdir()) == []
    os.close(gate)


def belongs(process: psutil.Process, folder: Path) -> bool:
    """Whether a process was started for a task in this folder."""
    with suppress(psutil.Error):
        return str(folder) in " ".join(process.environ().values())
    return False
