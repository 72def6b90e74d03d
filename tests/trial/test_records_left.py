"""What an attempt leaves behind: its child's request, and the files that record completed steps."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from chaoskit.model.history import History
from chaoskit.model.schedule import parse_schedule
from chaoskit.model.token import Target
from chaoskit.trial.loading import load
from chaoskit.trial.supervisor import Supervisor
from tests.trial.conftest import RunTask
from tests.trial.faulty import ends, said, scenario

CHILD = """
    theirs, mine = os.pipe()
    if os.fork() == 0:
        os.close(mine)
        {child}
        os._exit(0)
    os.close(theirs)
    {parent}
    os.close(mine)
    os.wait()
"""


@pytest.mark.parametrize("window", ["received", "applied", "answered"])
def test_a_child_that_asked_gets_its_answer_although_its_parent_was_killed(
    run_task: RunTask, window: str
) -> None:
    """Only the parent is dead: what the child had asked for is carried out and answered."""
    asks = "charge(1); say('answered')"
    source = scenario(CHILD.format(child=f"first() and ({asks.replace('; ', ', ')})", parent=""))
    (history,) = run_task(source, [f"kill-leader@payments.charge#1.{window}"])
    assert ends(history) == ["1 killed 9", "2 exit 0"]
    assert said(history, 1) == ["answered"]
    assert len(history.effects) == 1


def test_a_request_of_the_killed_leader_itself_is_not_carried_out(run_task: RunTask) -> None:
    """Its sender is dead, although a child lives on."""
    waits = "os.read(theirs, 1)"
    source = scenario(CHILD.format(child=waits, parent="first() and charge(1)"))
    (history,) = run_task(source, ["kill-leader@payments.charge#1.received"])
    assert ends(history) == ["1 killed 9", "2 exit 0"]
    assert not history.effects


MARKS = """
    for number in (1, 2):
        Path(f"done-{number}.tmp").write_text("charged")
        charge(number)
        os.rename(f"done-{number}.tmp", f"done-{number}")
"""


def test_the_files_that_record_steps_are_seen_after_each_attempt(run_task: RunTask) -> None:
    """With their sizes; other files are not."""
    source = scenario(MARKS, 'recorded=("done-?",)')
    (history,) = run_task(source, ["kill@payments.charge#2.applied"])
    assert history.records == {1: {"done-1": 7}, 2: {"done-1": 7, "done-2": 7}}


def test_a_copy_has_the_records_of_the_kill_that_it_stands_for(tmp_path: Path) -> None:
    """A trial that goes on from a copy tells of the same files, at the same places."""
    file = tmp_path / "task.py"
    file.write_text(scenario(MARKS, 'recorded=("done-?",)'), encoding="utf-8")
    schedule = parse_schedule("kill@payments.charge#2.applied")

    async def both() -> tuple[History, History]:
        async with Supervisor(load(Target(scenario=str(file))), seed=0) as supervisor:
            album = await supervisor.record(schedule.faults_of(1))
            (snapshot,) = album.values()
            return await supervisor.resume(snapshot, schedule), await supervisor.run(schedule)

    copied, real = asyncio.run(both())
    assert copied.records == real.records
    kinds = [[type(event.body) for event in history.events] for history in (copied, real)]
    assert kinds[0] == kinds[1]
