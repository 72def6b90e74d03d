"""How the plugin conducts itself beside others: xdist, timeouts, -x, --lf, Ctrl-C, SIGTERM."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from chaoskit.campaign.store import Store
from tests.gates import arrive, let_go
from tests.marks import rare
from tests.plugin.chaos_files import LOG, write_files

PR_SET_CHILD_SUBREAPER = 36

WAIT_S = 300
"""Far more than a launcher needs to clear up, on however busy a machine."""

GATED = '''
"""Appends two lines; each attempt waits at a gate between them, while there is one."""
from pathlib import Path

from chaoskit import Scenario

GATE = Path(__file__).with_name("gate")


def main():
    with open("log.txt", "w") as log:
        log.write("line 1")
        log.flush()
        if GATE.exists():
            with GATE.open("rb", buffering=0) as gate:
                gate.read(1)
        log.write("line 2")


scenario = Scenario(task=main, outputs=("log.txt",))
'''

TEST = """
import pytest

@pytest.mark.chaos("scenarios/gated.py")
{more}
def test_gated(chaos):
    chaos()

def test_next():
    pass
"""

SURVEYS_AND_ONE_TRIAL = 4
"""Attempts that pass the gate before the one that is met there: two surveys, the run that is
recorded, and a resume.
"""


class Session:
    """A running pytest in a process group of its own, whose task's attempts stop at a gate."""

    def __init__(self, folder: Path, *words: str, more: str = "") -> None:
        self.folder = folder
        write_files(folder, gated=GATED)
        (folder / "test_gated.py").write_text(TEST.format(more=more))
        (folder / "pytest.ini").write_text("[pytest]\nchaos_jobs = 1\n")
        self.work = folder / "work"
        self.work.mkdir(exist_ok=True)
        self.gate = folder / "scenarios" / "gate"
        os.mkfifo(self.gate)
        self.log = folder / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pytest", "-p", "no:randomly", *words],
                cwd=folder,
                env={**os.environ, "TMPDIR": str(self.work), "PYTEST_ADDOPTS": ""},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        threading.Thread(target=self._open_at_the_end, daemon=True).start()

    def await_one(self, passed: int = SURVEYS_AND_ONE_TRIAL) -> list[psutil.Process]:
        """Let so many attempts pass, wait until the next one stands at the gate; all processes."""
        for _ in range(passed):
            let_go(arrive(self.gate))
        self._standing = arrive(self.gate)
        assert self.process.poll() is None, self.log.read_text()
        main = psutil.Process(self.process.pid)
        return main.children(recursive=True)

    def open_the_gate(self) -> None:
        """What is at the gate goes on, and nobody is stopped there any more."""
        self.gate.unlink()
        os.close(self._standing)

    def _open_at_the_end(self) -> None:
        """Nobody is to wait at the gate for a pytest that has ended."""
        self.process.wait()
        with suppress(OSError):
            os.close(os.open(self.gate, os.O_RDONLY | os.O_NONBLOCK))

    def left(self) -> list[str]:
        """Work folders of trials that are still there."""
        return [folder.name for folder in self.work.glob("chaoskit*")]


@pytest.fixture
def adopting() -> Iterator[None]:
    """Orphans come to us: a container's first process may not look after the dead for long."""
    adopt = ctypes.CDLL(None).prctl
    adopt(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    yield
    adopt(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def again(folder: Path, *words: str) -> str:
    """Run pytest once more, with nothing in its way; what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=folder,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.usefixtures("adopting")
@pytest.mark.parametrize(
    ("words", "sent", "code"),
    [
        pytest.param((), signal.SIGINT, 2, id="ctrl-c"),
        rare(("-n", "1"), signal.SIGINT, 2, name="ctrl-c-xdist"),
        rare((), signal.SIGTERM, -signal.SIGTERM, name="sigterm"),
        rare(("-n", "1"), signal.SIGTERM, -signal.SIGTERM, name="sigterm-xdist"),
    ],
)
def test_an_interrupted_session_leaves_nothing_and_is_gone_on_with(
    tmp_path: Path, words: tuple[str, ...], sent: signal.Signals, code: int
) -> None:
    """Ctrl-C to the whole group, or SIGTERM to pytest alone, while a task runs: no process and no
    work folder stays, and the next run of pytest goes on with the campaign where it was.
    """
    session = Session(tmp_path, *words)
    tree = session.await_one()
    assert len(tree) >= 3, "a worker, the launcher, the task"
    if sent == signal.SIGINT:
        os.killpg(session.process.pid, sent)  # as a terminal does
    else:
        session.process.send_signal(sent)
    assert session.process.wait() == code, session.log.read_text()
    _, alive = psutil.wait_procs(tree, WAIT_S)
    assert [(process.pid, process.status()) for process in alive] == []
    assert session.left() == []
    session.open_the_gate()
    (run,) = (f for f in (tmp_path / "reports" / "runs").iterdir() if not f.is_symlink())
    with Store(run) as store:
        assert store.survey() is not None, "the undisturbed runs were behind it"
    assert "of them before an interruption" in again(tmp_path, *words)
    assert [f for f in run.parent.iterdir() if not f.is_symlink()] == [run]


@pytest.mark.usefixtures("adopting")
def test_a_timeout_ends_the_campaign_and_not_the_session(tmp_path: Path) -> None:
    """pytest-timeout's alarm fails the test and leaves no process of it; the next test runs."""
    session = Session(tmp_path, more="@pytest.mark.timeout(3600, method='signal')")
    tree = session.await_one()
    session.process.send_signal(signal.SIGALRM)  # as if the hour were over
    assert session.process.wait() == 1
    _, alive = psutil.wait_procs(tree, WAIT_S)
    assert [(process.pid, process.status()) for process in alive] == []
    text = session.log.read_text()
    assert "Timeout" in text
    assert "1 failed, 1 passed" in text
    assert session.left() == []
    session.open_the_gate()


MANY = """
import pytest

@pytest.mark.chaos("scenarios/log.py:bad")
@pytest.mark.parametrize("n", [1, 2])
def test_bad(chaos, n):
    chaos()

@pytest.mark.chaos("scenarios/log.py:good")
def test_good(chaos):
    chaos()
"""


@pytest.mark.exhaustive
def test_the_first_failure_is_the_last_where_that_is_asked_for(
    pytester: pytest.Pytester,
) -> None:
    """-x stops after the test whose finding failed, which still says all that it knows; --lf then
    runs that one alone, and it passes when the task is mended.
    """
    write_files(pytester.path, log=LOG)
    pytester.makepyfile(MANY)
    pytester.makeini("[pytest]\nchaos_jobs = 1\nchaos_points = 3\n")
    result = pytester.runpytest_subprocess("-x")
    text = result.stdout.str()
    assert "test_bad[1]" in text
    assert "test_bad[2]" not in text
    assert "found             diverged_state@outputs in" in text
    assert text.count("INVALID  scenarios/log.py:bad") == 1
    (pytester.path / "scenarios" / "mended").touch()
    result = pytester.runpytest_subprocess("--lf", "-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*test_bad?1? PASSED*"])


ONE = """
import pytest

@pytest.mark.chaos("scenarios/log.py:{name}")
def test_it(chaos):
    chaos()
"""


@pytest.mark.parametrize("dist", ["load", rare("loadfile")])
def test_workers_tell_everything_to_the_one_summary(pytester: pytest.Pytester, dist: str) -> None:
    """With two workers each campaign is in the summary once, under -q too."""
    write_files(pytester.path, log=LOG)
    names = ("bad", "good", "same")
    pytester.makepyfile(**{f"test_{name}": ONE.format(name=name) for name in names})
    pytester.makeini("[pytest]\nchaos_points = 3\n")
    result = pytester.runpytest_subprocess("-n", "2", "--dist", dist, "-q")
    told = [line.split(":")[:2] for line in result.outlines if "scenarios/log.py:" in line]
    for name, verdict in zip(names, ("INVALID", "VALID", "INVALID"), strict=True):
        assert told.count([f"{verdict:<8} scenarios/log.py", name]) == 1
    assert sum("chaoskit: kill and resume" in line for line in result.outlines) == 1
