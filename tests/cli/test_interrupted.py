"""Ctrl-C while chaoskit begins, and while it ends: a message, the right code, no traceback."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chaoskit.cli.process import INTERRUPTED

_SIGNALLED = """
import importlib.abc, os, sys

class Sender(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            for _ in range({times}):
                os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Sender())
sys.argv = ["chaoskit", "list"]
from chaoskit.cli.main import main
main()
"""
"""chaoskit, to which a signal comes when it imports a module for the first time."""


@pytest.mark.parametrize("module", ["chaoskit.cli.commands", "click", "rich.console"])
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_first_imports_ends_with_a_line(
    tmp_path: Path, module: str, times: int, number: signal.Signals
) -> None:
    """There is nothing to tidy up then."""
    code = _SIGNALLED.format(module=module, times=times, number=int(number))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (128 + number, "")
    assert done.stderr == f"{INTERRUPTED}\n"


@pytest.mark.parametrize("module", ["chaoskit.trial.ladder", "chaoskit.reporting.clean"])
def test_a_signal_while_a_command_runs_ends_with_a_line(tmp_path: Path, module: str) -> None:
    """The command is left in order, by an exception; also where an error is being told."""
    code = _SIGNALLED.format(module=module, times=1, number=int(signal.SIGINT))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "Traceback" in done.stderr) == (130, False), done.stderr
    assert [line for line in done.stderr.splitlines() if line] == [INTERRUPTED]


def test_little_is_imported_before_signals_are_seen_to() -> None:
    """Until then Ctrl-C shows a traceback: nothing but chaoskit's own few modules is new."""
    code = (
        "import sys; before = set(sys.modules); import chaoskit.cli.main; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {
        "__future__", "importlib", "importlib._bootstrap", "importlib._bootstrap_external",
        "warnings", "chaoskit", "chaoskit.cli", "chaoskit.cli.main", "chaoskit.cli.process",
    }  # fmt: skip
