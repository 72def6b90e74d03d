"""What is looked at when a task never came to its end."""

from __future__ import annotations

import os

import pytest

from chaoskit.model.events import FileLeft
from chaoskit.model.token import CommandSpec
from tests.trial.conftest import RunTask

GONE = 2**22 + 1
"""No process has such a number: it is above the most that Linux gives."""


def left(run_task: RunTask, script: str) -> dict[str, FileLeft]:
    """What is seen of the files of a shell that runs ``script`` in its state directory."""
    (history,) = run_task(CommandSpec(command=("sh", "-c", script)), ["none"])
    return {name.removeprefix("state:"): file for name, file in history.left.items()}


def test_a_lock_is_looked_at_and_its_owner(run_task: RunTask) -> None:
    """Whether a process of the number in it runs; one that is empty names nobody."""
    ours = f'{{"pid": {os.getpid()}}}'
    script = f"cd {{state}}; echo {GONE} > a.pid; printf '%s' '{ours}' > b.lock; : > lock; exit 1"
    assert left(run_task, script) == {
        "a.pid": FileLeft(8, f"{GONE}\n", GONE),
        "b.lock": FileLeft(len(ours), ours, os.getpid(), runs=True),
        "lock": FileLeft(0, ""),
    }


def test_files_that_the_last_words_name_or_that_are_not_whole_are_looked_at(
    run_task: RunTask,
) -> None:
    """The named ones first, three at most; a credential in one of them is blotted out."""
    script = (
        "cd {state}; echo whole > whole; echo 1 > a.json; printf '[1,' > b.json; : > c; : > d; "
        "echo key sk_live_abcdefgh > z.conf; echo cannot read z.conf; exit 1"
    )
    assert left(run_task, script) == {
        "z.conf": FileLeft(21, "key [redacted]\n"),
        "b.json": FileLeft(3, "[1,"),
        "c": FileLeft(0, ""),
    }


@pytest.mark.parametrize("code", [0, 1])
def test_nothing_is_looked_at_where_nothing_is_to_be_explained(
    run_task: RunTask, code: int
) -> None:
    """A task that succeeds is not stuck, and one that leaves only whole files shows nothing."""
    script = f"cd {{state}}; echo 1 > a.json; {': > lock;' if code == 0 else ''} exit {code}"
    assert left(run_task, script) == {}
