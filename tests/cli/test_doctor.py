"""``chaoskit doctor``, and runs on machines where system calls cannot be traced."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from chaoskit.trace.abi import this_abi

ROOT = Path(__file__).resolve().parents[2]
DENIED = ROOT / "tests" / "denied.py"
TEXTBOOK = ROOT / "scenarios" / "broken" / "record_after_effect.py"

needs_tracing = pytest.mark.skipif(
    this_abi() is None, reason="system calls are traced on Linux on x86_64 and aarch64 only"
)

TASK = """
import os
import urllib.request

from chaoskit import Scenario

STATE = os.environ.get("CHAOSKIT_STATE_DIR", ".")


def main():
    for name in ("ada", "bob"):
        done = os.path.join(STATE, name)
        if not os.path.exists(done):
            form = f"amount=100&currency=eur&source=tok_visa&description={name}".encode()
            url = os.environ["CHAOSKIT_PAYMENTS_URL"] + "/v1/charges"
            headers = {"Authorization": "Bearer sk_test_x"}
            urllib.request.urlopen(urllib.request.Request(url, form, headers)).read()
            open(done, "w").close()  # record


scenario = Scenario(task=main, services=("payments",))
"""


class Machine:
    """Calls chaoskit in a folder of its own, on a machine that denies something or nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "task.py").write_text(TASK, encoding="utf-8")

    def __call__(self, *words: str, denied: str = "", path: str = "") -> tuple[int, str]:
        """Exit code, and all that was printed, with single spaces."""
        command = [sys.executable, "-m", "chaoskit.cli.main", *words]
        if denied:
            command = [sys.executable, str(DENIED), denied, *command]
        done = subprocess.run(
            command,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
            | ({"PATH": path} if path else {}),
        )
        return done.returncode, re.sub(r"[ \n]+", " ", done.stdout)

    def report(self) -> dict[str, object]:
        """The JSON report."""
        found: dict[str, object] = json.loads((self.folder / "out.json").read_text())
        return found


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A folder with a small task that charges and then records."""
    return Machine(tmp_path)


@needs_tracing
def test_the_doctor_says_what_works(machine: Machine) -> None:
    """Each rung by its name, what is used, and what that misses."""
    code, out = machine("doctor")
    assert code == 0
    assert "calls works a shell was killed before its second write, exactly" in out
    for name in ("windows", "lines"):
        assert f"{name} works" in out
    assert "clock works a program was a week ahead, slept and waited" in out
    assert re.search(r"memory (works|no) work folders are in /\S+, \d+ MiB free", out)
    assert "used unless you say otherwise: calls, windows" in out
    assert "blind to stores into mapped files between two calls" in out
    assert "cannot be traced" not in out


def test_what_is_not_there_does_not_work(machine: Machine) -> None:
    """Without strace on the path its rung says so, and the doctor is content all the same."""
    code, out = machine("doctor", path="/nonexistent")
    assert code == 0
    assert "strace no not installed; only tests use it" in out


DENIALS: Sequence[object] = (
    pytest.param("ptrace", "the kernel does not let us trace: Operation not permitted"),
    pytest.param("filters", "the kernel refuses a seccomp filter"),
)


@needs_tracing
@pytest.mark.parametrize(("denied", "why"), DENIALS)
def test_the_doctor_says_why_calls_cannot_be_traced(
    machine: Machine, denied: str, why: str
) -> None:
    """The kernel's own answer, in the line of that rung."""
    code, out = machine("doctor", denied=denied)
    assert code == 0
    line = out[out.index("calls no") : out.index("windows works")]
    assert why in line


@needs_tracing
@pytest.mark.parametrize("denied", ["ptrace", "filters"])
def test_the_doctor_names_what_is_used_instead(machine: Machine, denied: str) -> None:
    """The fallback, what it misses, and what would help."""
    code, out = machine("doctor", denied=denied)
    assert code == 0, "windows and lines do work"
    assert "used unless you say otherwise: windows, crossings, lines" in out
    assert "System calls cannot be traced here" in out
    assert "--times" in out
    assert "blind to what happens inside a call, such as the writes of a commit" in out


@needs_tracing
@pytest.mark.parametrize("denied", ["ptrace", "filters"])
def test_a_run_falls_back_and_says_so(machine: Machine, denied: str) -> None:
    """Windows, crossings and lines are used, which is printed with what that misses, and the fault
    is found at the same places by each of them.
    """
    code, out = machine("run", "task.py", "--json", "out.json", denied=denied)
    assert code == 1
    assert "mechanisms windows, crossings, lines" in out
    assert "moments between two system calls" in out
    assert "blind to what happens between two requests" in out
    assert "connections to servers that are no service: they were not seen (the kernel" in out
    report = machine.report()
    assert report["mechanisms"] == ["windows", "crossings", "lines"]
    findings = report["findings"]
    assert isinstance(findings, list)
    record = next(n for n, line in enumerate(TASK.splitlines(), 1) if line.endswith("# record"))
    shown = {finding["point"] for finding in findings}
    assert {"payments.charge#1.applied", "payments.charge#2.answered"} <= shown
    assert {f"line/task.py:{record}#1", f"line/task.py:{record}#2"} <= shown
    assert {finding["kind"] for finding in findings} == {"duplicate_effect"}


@pytest.mark.exhaustive
@needs_tracing
def test_lines_alone_find_the_textbook_fault(machine: Machine) -> None:
    """Killed before lines only, where ptrace is denied, charges of the textbook's scenario are
    found to be made twice.
    """
    words = ("run", str(TEXTBOOK), "--mechanisms", "lines", "--max-points", "150")
    code, out = machine(*words, "--json", "out.json", "-q", denied="ptrace")
    assert code == 1
    assert "mechanisms lines" in out
    findings = machine.report()["findings"]
    assert isinstance(findings, list)
    assert {finding["kind"] for finding in findings} == {"duplicate_effect"}
    assert all(finding["point"].startswith("line/") for finding in findings)
    assert len({finding["subject"] for finding in findings}) > 6


@needs_tracing
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--mechanisms", "calls"), "windows,crossings"),
        (("--mechanisms", "windows,calls"), "the kernel does not let us trace"),
        (("--power-loss",), "chaoskit doctor says whether that works here"),
    ],
)
def test_what_needs_the_tracer_is_refused_without_it(
    machine: Machine, words: Sequence[str], says: str
) -> None:
    """Exit code 2, with the reason and the way out; never a run that looked at less than asked."""
    code, out = machine("run", "task.py", *words, denied="ptrace")
    assert code == 2
    assert says in out
    assert "doctor" in out
    assert not list((machine.folder / "reports").glob("runs/*"))


@pytest.mark.exhaustive
@needs_tracing
def test_a_token_that_needs_the_tracer_does_not_lie_without_it(machine: Machine) -> None:
    """A finding at a system call cannot be replayed where none is traced: UNKNOWN or an error that
    says why, never FIXED.
    """
    code, _ = machine("run", "task.py", "--mechanisms", "calls", "--json", "out.json", "-q")
    assert code == 1
    findings = machine.report()["findings"]
    assert isinstance(findings, list)
    words = findings[0]["replay"].split()[1:]
    code, out = machine(*words, denied="ptrace")
    assert code in {2, 3, 4}
    assert "FIXED" not in out
    assert "does not let us trace" in out
