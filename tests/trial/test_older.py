"""An older copy of a task's files, put back; also after the task had ended with success."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trial.conftest import RunTask
from tests.trial.faulty import ends, said, scenario

KILLED, WHOLE = "kill@payments.charge#1.applied", "damage:stale:**/*"

BILL = """
    for number in (1, 2, 3):
        if not Path(str(number)).exists():
            charge(number, key=KEY and str(number))
            Path(str(number)).touch()
"""


@pytest.mark.parametrize(("key", "times"), [("'k'", 1), ("None", 2)])
def test_a_finished_task_is_started_again_on_older_files(
    run_task: RunTask, key: str, times: int
) -> None:
    """What the copy does not hold is done again: the keys dedupe it, and without keys it is done
    twice.
    """
    source = scenario(BILL.replace("KEY and str(number)", f"{key} and str(number)"))
    (history,) = run_task(source, [f"{KILLED} / - / {WHOLE}"])
    assert ends(history) == ["1 killed 9", "2 exit 0", "3 exit 0"]
    assert [body.fault for _, body in history.landed] == [KILLED, WHOLE]
    amounts = [int(dict(body.effect.fields)["amount"]) for _, body in history.effects]
    assert [amounts.count(200), amounts.count(300)] == [times, times]


def test_a_success_is_the_end_unless_a_later_attempt_has_a_fault(run_task: RunTask) -> None:
    """An attempt with a fault of its own that did not land ends the trial, and so does the last."""
    texts = [KILLED, f"{KILLED} / - / -", f"kill@email.send#1.received / {WHOLE}", f"- / {KILLED}"]
    charges = scenario("charge(1) if first() else None")
    once = [ends(history) for history in run_task(charges, texts)]
    assert once == [
        ["1 killed 9", "2 exit 0"],
        ["1 killed 9", "2 exit 0"],
        ["1 exit 0"],
        ["1 exit 0", "2 exit 0"],
    ]


LINKS = """
    if first(MARKS + "/one"):
        Path("v1").mkdir()
        Path("v1/data").write_text("one")
        Path("now").symlink_to("v1")
        Path("run").write_text("#!/bin/sh")
        Path("run").chmod(0o755)
        os.utime("run", (1, 1))
        charge(1)
    elif first(MARKS + "/two"):
        for name in ("v1/data", "run", "now"):
            Path(name).unlink()
        Path("v1").rmdir()
        Path("v2").mkdir()
        Path("v2/data").write_text("two")
        Path("empty").mkdir()
        Path("now").symlink_to("v2")
        Path("run").mkdir()
    else:
        say(sorted(str(p) for p in Path().rglob("*")))
        say(Path("now/data").read_text())
        say((os.stat("run").st_mode & 0o777, int(os.stat("run").st_mtime)))
"""


def test_an_older_copy_has_the_folders_links_modes_and_times_of_then(
    run_task: RunTask, tmp_path: Path
) -> None:
    """Whole: nothing newer stands beside it, also no folder without a file."""
    source = scenario(LINKS.replace("MARKS", repr(str(tmp_path))))
    (history,) = run_task(source, [f"{KILLED} / - / {WHOLE}"])
    there = ["now", "run", "v1", "v1/data"]
    assert said(history, 3) == [str(there), "one", "(493, 1)"]
