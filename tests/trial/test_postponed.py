"""Services that carry out a request later than its sender thinks: real trials, and copies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from chaoskit.model.events import AttemptEnded, Body, EffectApplied, ReplySent, RequestReceived
from chaoskit.model.history import History
from chaoskit.model.schedule import parse_schedule
from chaoskit.model.token import Target
from chaoskit.trial.supervisor import Supervisor
from tests.trial.conftest import RunTask
from tests.trial.traced import with_supervisor

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"

TASK = """
import sys

sys.path.insert(0, {folder!r})
import _shop as shop

from chaoskit import Scenario


def main():
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    for number in range(checkpoint.values.get("done", 0), 3):
        buyer = {{"cents": 100 + number, "email": "a@example.com", "name": "A"}}
        services.charge(buyer, key=f"key-{{number}}" if {keyed} else None)
        checkpoint.save(done=number + 1)


scenario = Scenario(task=main, services=("payments",), behaviours={behaviours})
"""


def task(*behaviours: str, keyed: bool = False) -> str:
    """Three charges, each recorded; a connection that is cut ends the attempt."""
    return TASK.format(folder=str(SCENARIOS), behaviours=behaviours, keyed=keyed)


def told(history: History) -> list[str]:
    """What happened, in order."""
    said: list[str] = []
    for event in history.events:
        match event.body:
            case RequestReceived() as body:
                said.append(f"asked {body.request}")
            case EffectApplied() as body:
                said.append(f"done {body.request} of {body.attempt}")
            case ReplySent() as body:
                said.append(f"answered {body.request} {body.status if body.delivered else 'lost'}")
            case AttemptEnded() as body:
                said.append(f"{body.how} {body.code}")
            case _:
                pass
    return said


def plain(history: History) -> list[Body]:
    """Without times and output."""
    return [
        msgspec.structs.replace(body, seconds=0.0, output_bytes=0, output_tail="")
        if isinstance(body := event.body, AttemptEnded)
        else body
        for event in history.events
    ]


@pytest.mark.parametrize("keyed", [False, True])
def test_a_charge_that_is_committed_late_is_booked_for_the_attempt_that_sent_it(
    run_task: RunTask, *, keyed: bool
) -> None:
    """The resume sends it again; with its key the late one is the repeat and changes nothing."""
    (history,) = run_task(task("commit-late:1@payments.charge#2", keyed=keyed), ["none"])
    late = [] if keyed else ["done 2 of 1"]
    assert told(history) == [
        *("asked 1", "done 1 of 1", "answered 1 200"),
        *("asked 2", "answered 2 lost", "exit 1"),
        *("asked 3", "done 3 of 2", "answered 3 200"),
        *("asked 4", *late, "done 4 of 2", "answered 4 200", "exit 0"),
    ]


def test_what_is_committed_when_the_trial_ends_is_booked_last(run_task: RunTask) -> None:
    """After the task has ended, before its outputs are looked at."""
    (history,) = run_task(task("commit-late:end@payments.charge#3"), ["none"])
    assert told(history)[-2:] == ["exit 0", "done 3 of 1"]


def test_a_task_that_meets_a_service_that_is_down_goes_on_when_it_is_up(run_task: RunTask) -> None:
    """Each attempt fails at its first request until the outage is over."""
    (history,) = run_task(task("down:2@payments.*#2"), ["none"])
    assert told(history) == [
        *("asked 1", "done 1 of 1", "answered 1 200"),
        *("asked 2", "answered 2 503", "exit 1", "asked 3", "answered 3 503", "exit 1"),
        *("asked 4", "done 4 of 3", "answered 4 200"),
        *("asked 5", "done 5 of 3", "answered 5 200", "exit 0"),
    ]


def test_a_copy_in_which_a_request_is_postponed_is_the_kill(tmp_path: Path) -> None:
    """What waits is part of the world: the resume from a copy sees it land where the real one does.

    The connection is cut by the service, and the kill comes before the attempt can fail by itself.
    """
    file = tmp_path / "postponed.py"
    file.write_text(task("commit-late:1@payments.charge#2"), encoding="utf-8")
    schedules = [
        parse_schedule(f"kill@payments.charge#2.{window}")
        for window in ("received", "applied", "answered")
    ]

    async def then(supervisor: Supervisor) -> None:
        supervisor.conduct = replace(supervisor.conduct, calls=False)
        album = await supervisor.record([s.attempts[0][0] for s in schedules])
        for schedule in schedules:
            ((fault,),) = schedule.attempts
            copied = await supervisor.resume(album[fault], schedule)
            real = await supervisor.run(schedule)
            assert plain(copied) == plain(real), schedule
            landed = [line for line in told(real) if line == "done 2 of 1"]
            assert len(landed) == (0 if "received" in str(fault) else 1)

    with_supervisor(Target(scenario=str(file)), then)
