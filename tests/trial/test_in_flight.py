"""Requests that were in flight when their sender died, and land late."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.campaign.events import Finished
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.campaign.workers import Inline
from chaoskit.cli.run import in_flight_of
from chaoskit.model.actions import LATE, Late
from chaoskit.model.errors import UsageError
from chaoskit.model.events import (
    AttemptEnded,
    Body,
    EffectApplied,
    FaultLanded,
    ReplySent,
    RequestReceived,
)
from chaoskit.model.history import History
from chaoskit.model.schedule import Schedule, parse_schedule
from chaoskit.model.token import Target
from chaoskit.reporting.limits import LATE_ONLY
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.trial.in_flight import InFlight, LateRequest
from chaoskit.trial.supervisor import Supervisor
from tests.trial.conftest import RunTask
from tests.trial.traced import with_supervisor

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"

# When each lands.

REQUESTS = st.lists(st.sampled_from(["payments", "email"]), max_size=8)
WAITING = st.lists(
    st.tuples(st.sampled_from(["payments", "email"]), st.sampled_from([1, 2, None])), max_size=4
)


@given(REQUESTS, WAITING)
def test_each_lands_when_its_service_has_had_so_many_more_or_at_the_end(
    requests: Sequence[str], waiting: Sequence[tuple[str, int | None]]
) -> None:
    """Requests to another service do not count, and nothing lands twice or is forgotten."""
    landed: list[int] = []
    in_flight = InFlight(lambda late: landed.append(late.number))
    for number, (service, after) in enumerate(waiting):
        in_flight.add(LateRequest(1, number, service, lambda: ()), after)
    for done in range(len(requests) + 1):
        counts = Counter(requests[:done])
        due = {
            n for n, (service, k) in enumerate(waiting) if k is not None and counts[service] >= k
        }
        assert set(landed) == due
        assert bool(in_flight) is (len(due) < len(waiting))
        if done < len(requests):
            in_flight.passed(requests[done])
    in_flight.end()
    assert sorted(landed) == list(range(len(waiting)))
    assert not in_flight


# In real trials.

TASK = """
import email.message
import os
import smtplib
import sys

sys.path.insert(0, {folder!r})
import _shop as shop

from chaoskit import Scenario


def charge(services, number, key):
    buyer = {{"cents": 100 + number, "email": "a@example.com", "name": "A"}}
    services.charge(buyer, key=key)


def mail(services, number, key):
    services.send("a@example.com", f"mail {{number}}", "thanks", key=key)


def by_smtp(services, number, key):
    message = email.message.EmailMessage()
    message["From"], message["To"] = "shop@example.com", "a@example.com"
    message["Subject"] = f"mail {{number}}"
    message.set_content("thanks")
    host, port = os.environ["CHAOSKIT_SMTP_HOST"], int(os.environ["CHAOSKIT_SMTP_PORT"])
    with smtplib.SMTP(host, port, local_hostname="localhost") as smtp:
        smtp.send_message(message)


def main():
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    for number in range(checkpoint.values.get("done", 0), 4):
        {do}(services, number, f"key-{{number}}" if {keyed} else None)
        checkpoint.save(done=number + 1)


scenario = Scenario(task=main, services=("payments", "email"))
"""

OPERATION = {"charge": "payments.charge", "mail": "email.send", "by_smtp": "email.send"}


def task(do: str, *, keyed: bool) -> str:
    """A scenario that does one thing four times, and records each time."""
    return TASK.format(folder=str(SCENARIOS), do=do, keyed=keyed)


def told(history: History) -> list[str]:
    """What happened from the kill on, in order: each request's number and how it went on."""
    said: list[str] = []
    for event in history.events:
        match event.body:
            case FaultLanded() | AttemptEnded(how="exit"):
                said.append("killed" if isinstance(event.body, FaultLanded) else "ended")
            case RequestReceived() as body:
                said.append(f"asked {body.request}")
            case EffectApplied() as body:
                said.append(f"done {body.request} of {body.attempt}")
            case ReplySent() as body:
                said.append(f"answered {body.request}" + (" again" if body.deduped else ""))
            case _:
                pass
    return said[said.index("killed") :]


LANDS = {"late:1": 3, "late:2": 4, "late:end": None}
"""After which request's effect the second one lands, which was in flight."""


@pytest.mark.parametrize("do", ["charge", "mail", "by_smtp"])
def test_what_is_in_flight_lands_after_the_first_the_second_or_all_that_follow(
    run_task: RunTask, do: str
) -> None:
    """It is done by the attempt that sent it, once, between a later request's effect and its
    answer, or when the task has ended; and nobody is answered for it.
    """
    schedules = [f"{way}@{OPERATION[do]}#2.received" for way in LATE]
    for way, history in zip(LATE, run_task(task(do, keyed=False), schedules), strict=True):
        expected = ["killed"]
        for number in (3, 4, 5):  # the second one again, and two more
            expected += [f"asked {number}", f"done {number} of 2"]
            expected += ["done 2 of 1"] if LANDS[way] == number else []
            expected += [f"answered {number}"]
        expected += ["ended"] + (["done 2 of 1"] if LANDS[way] is None else [])
        assert told(history) == expected, way
        assert history.completed
        assert len(history.landed) == 1


@pytest.mark.parametrize("do", ["charge", "mail"])
def test_with_a_key_nothing_happens_twice_in_either_order(run_task: RunTask, do: str) -> None:
    """Whether the late one or its repeat comes first, the service does one of them."""
    source = task(do, keyed=True)
    schedules = [f"{way}@{OPERATION[do]}#{n}.received" for way in LATE for n in (1, 2, 4)]
    for schedule, history in zip(schedules, run_task(source, schedules), strict=True):
        done = Counter(body.effect.fields for _, body in history.effects)
        assert set(done.values()) == {1}, schedule
        assert len(done) == 4


FIRST = """
import os
import sys

sys.path.insert(0, {folder!r})
import _shop as shop

from chaoskit import Scenario


def main():
    services, done = shop.Shop(), shop.STATE / "done"
    services.find_charge("r")
    services.find_charge("r")
    if not done.exists():
        buyer = {{"cents": 100, "email": "a@example.com", "name": "A"}}
        services.charge(buyer, key="k", reference="r")
        done.touch()


scenario = Scenario(task=main, services=("payments",))
"""


def test_a_late_request_may_come_before_its_repeat(run_task: RunTask) -> None:
    """It lands after a look-up that did not see it; the repeat is then answered from the key."""
    source = FIRST.format(folder=str(SCENARIOS))
    schedules = [f"{way}@payments.charge#1.received" for way in LATE]
    one, two, end = run_task(source, schedules)
    assert told(one) == [
        "killed", "asked 4", "done 3 of 1", "answered 4", "asked 5", "answered 5",
        "asked 6", "answered 6 again", "ended",
    ]  # fmt: skip
    assert told(two) == [
        "killed", "asked 4", "answered 4", "asked 5", "done 3 of 1", "answered 5",
        "asked 6", "answered 6 again", "ended",
    ]  # fmt: skip
    assert told(end) == [
        "killed", "asked 4", "answered 4", "asked 5", "answered 5",
        "asked 6", "done 6 of 2", "answered 6", "ended",
    ]  # fmt: skip


def test_several_are_in_flight_where_a_task_is_killed_several_times(run_task: RunTask) -> None:
    """Each lands by its own count, that of attempts which are over goes on counting."""
    schedule = " / ".join(f"{way}@payments.charge#1.received" for way in ("late:end", "late:2"))
    (history,) = run_task(task("charge", keyed=False), [schedule])
    assert told(history) == [
        "killed", "asked 2", "killed",
        "asked 3", "done 3 of 3", "answered 3",
        "asked 4", "done 4 of 3", "done 2 of 2", "answered 4",
        "asked 5", "done 5 of 3", "answered 5",
        "asked 6", "done 6 of 3", "answered 6",
        "ended", "done 1 of 1",
    ]  # fmt: skip


def plain(history: History) -> list[Body]:
    """Without times and output."""
    return [
        msgspec.structs.replace(body, seconds=0.0, output_bytes=0, output_tail="")
        if isinstance(body := event.body, AttemptEnded)
        else body
        for event in history.events
    ]


@pytest.mark.parametrize("do", ["charge", "by_smtp"])
def test_a_copy_with_a_request_in_flight_is_the_kill(tmp_path: Path, do: str) -> None:
    """From a snapshot each way gives the history of the real kill, event for event."""
    file = tmp_path / "late.py"
    file.write_text(task(do, keyed=False), encoding="utf-8")
    schedules = [
        parse_schedule(f"{way}@{OPERATION[do]}#{number}.received")
        for way in LATE
        for number in (1, 3)
    ]

    async def then(supervisor: Supervisor) -> None:
        supervisor.conduct = replace(supervisor.conduct, calls=False)
        album = await supervisor.record([s.attempts[0][0] for s in schedules])
        assert len(album) == 2, "one world for each request, however late it lands"
        for schedule in schedules:
            ((fault,),) = schedule.attempts
            copied = await supervisor.resume(
                next(album[f] for f in album if f.point == fault.point), schedule
            )
            assert plain(copied) == plain(await supervisor.run(schedule)), schedule

    with_supervisor(Target(scenario=str(file)), then)


# In campaigns.


def campaign(tmp_path: Path, source: str, **options: object) -> tuple[Summary, list[Schedule]]:
    """A campaign over the windows of a scenario; its summary and its late landings."""
    file = tmp_path / "scenario_in_flight.py"
    file.write_text(source, encoding="utf-8")
    chosen = Options(
        target=Target(scenario=str(file)),
        mechanisms=("windows",),
        runs=str(tmp_path / "runs"),
        **options,  # type: ignore[arg-type]
    )
    last = [event for event in run(chosen, Inline()) if isinstance(event, Finished)][-1]
    with Store(last.folder) as store:
        schedules = [parse_schedule(trial.schedule) for trial in store.trials()]
        faults = {s: [f for faults in s.attempts for f in faults] for s in schedules}
        late = [s for s in schedules if any(isinstance(f.action, Late) for f in faults[s])]
        return summarize(store), late


STEPS = """
import sys
from dataclasses import replace

sys.path.insert(0, {folder!r})
from forty_steps import _scenario

scenario = replace(_scenario("few", care="{care}", steps=3), settled={settled})
"""


def steps(care: str, settled: Sequence[str] = ()) -> str:
    """Three of the exact steps."""
    return STEPS.format(folder=str(SCENARIOS / "exact"), care=care, settled=tuple(settled))


def test_every_effect_is_tried_late_in_every_way_that_was_asked_for(tmp_path: Path) -> None:
    """One trial for each effect and way; none for a look-up, which changes nothing."""
    summary, late = campaign(tmp_path, steps("look up"), in_flight=tuple(LATE))
    expected = {f"{way}@payments.charge#{n}.received" for way in LATE for n in (1, 2, 3)}
    assert {str(schedule) for schedule in late} == expected
    assert summary.late == len(expected)


def test_a_look_up_is_wrong_when_what_it_looks_for_is_under_way(tmp_path: Path) -> None:
    """Every late landing shows a duplicate and no kill shows anything: the report says what that
    means, and how to mend it.
    """
    summary, late = campaign(tmp_path, steps("look up"))
    assert {f.schedule for f in summary.findings} == {str(schedule) for schedule in late}
    assert summary.kinds == {"duplicate_effect"}
    assert LATE_ONLY in summary.remarks


@pytest.mark.parametrize("care", ["none", "key"])
def test_the_explanation_is_given_only_where_it_explains(tmp_path: Path, care: str) -> None:
    """A task that fails at plain kills too has another fault; one that never fails has none."""
    summary, late = campaign(tmp_path, steps(care))
    assert late
    assert summary.verdict == ("INVALID" if care == "none" else "VALID")
    assert LATE_ONLY not in summary.remarks


@pytest.mark.parametrize("pattern", ["payments.*", "payments.charge"])
def test_what_a_scenario_relies_on_is_not_tried_and_said(tmp_path: Path, pattern: str) -> None:
    """settled= leaves its patterns out, and the report names them among what was not tested."""
    summary, late = campaign(tmp_path, steps("look up", [pattern]))
    assert late == []
    assert summary.late == 0
    assert summary.verdict == "VALID"
    said = f"late landing of {pattern}: the scenario says"
    assert any(line.startswith(said) for line in summary.not_tested)


def test_settled_of_another_operation_changes_nothing(tmp_path: Path) -> None:
    """Only what matches is left out."""
    source = task("charge", keyed=False).replace(
        'services=("payments", "email")', 'services=("payments", "email"), settled=("email.*",)'
    )
    _, late = campaign(tmp_path, source)
    assert len(late) == 4


def test_landed_alone_tries_none_and_says_so(tmp_path: Path) -> None:
    """Without late landings the report counts them among what was not tested."""
    summary, late = campaign(tmp_path, steps("look up"), in_flight=())
    assert late == []
    assert summary.verdict == "VALID"
    assert any("--in-flight late:1" in line for line in summary.not_tested)


# By the command line.


def chaoskit(folder: Path, *words: str) -> tuple[int, str]:
    """Exit code and all output, with single spaces."""
    done = subprocess.run(
        [sys.executable, "-m", "chaoskit.cli.main", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, re.sub(r"\s+", " ", done.stdout + done.stderr)


def test_the_option_takes_a_list(tmp_path: Path) -> None:
    """--in-flight landed tries none; late:2,late:end tries both for each effect."""
    (tmp_path / "few.py").write_text(steps("look up"), encoding="utf-8")
    words = ("run", "few.py", "--mechanisms", "windows", "-q", "--in-flight")
    code, out = chaoskit(tmp_path, *words, "landed")
    assert (code, "requests that land late" in out) == (0, False)
    assert "requests that land after the resume has begun (--in-flight late:1)" in out
    code, out = chaoskit(tmp_path, *words, "landed,late:2,late:end")
    assert "6 requests that land late" in out
    assert code == 1


@pytest.mark.parametrize(
    ("given", "nearest"), [("late:3", "late:1"), ("late", "late:1"), ("lande", "landed")]
)
def test_an_unknown_way_is_an_error_that_names_the_nearest(given: str, nearest: str) -> None:
    """The ways that are most like it, and none is taken for another."""
    with pytest.raises(UsageError, match=f"unknown way to land '{given}'") as wrong:
        in_flight_of(f"landed,{given}")
    assert nearest in str(wrong.value).rpartition("nearest:")[2]
    assert wrong.value.exit_code == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--in-flight", "late:3"), "unknown way to land 'late:3'"),
        (("--at", "late:1@payments.charge#1.applied"), "only a request lands late"),
    ],
)
def test_what_cannot_land_late_is_refused_before_anything_is_run(
    tmp_path: Path, words: Sequence[str], says: str
) -> None:
    """Exit code 2, and no campaign is left behind."""
    (tmp_path / "few.py").write_text(steps("look up"), encoding="utf-8")
    code, out = chaoskit(tmp_path, "run", "few.py", *words)
    assert code == 2
    assert says in out
    assert not list(tmp_path.glob("reports/runs/*/campaign.sqlite"))
