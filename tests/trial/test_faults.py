"""Faults other than a kill, on real processes: stops, pauses, twins, several resumers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from chaoskit.model.errors import UsageError
from chaoskit.model.events import (
    AttemptEnded,
    AttemptStarted,
    EffectApplied,
    FaultLanded,
    ReplySent,
    RequestReceived,
)
from chaoskit.model.schedule import Fault
from chaoskit.model.token import CommandSpec
from chaoskit.trace.abi import this_abi
from chaoskit.trial.launching import Launching
from chaoskit.trial.output import Output
from chaoskit.trial.watch import Watch
from tests.trial.conftest import RunTask
from tests.trial.faulty import (
    asked,
    charged,
    ends,
    index_of,
    no_process_is_left,
    said,
    scenario,
    standing,
)

LONG = "60000ms"
"""A grace that no test waits for."""


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    """After each trial no process of it is left."""
    before = standing()
    yield
    assert no_process_is_left(before)


# Stop and interrupt.

HANDLES = """
def bye(number, frame):
    print("asked to stop by", signal.Signals(number).name)
    sys.exit(STATUS)

signal.signal(signal.SIGTERM, bye)
signal.signal(signal.SIGINT, bye)
for number in (1, 2, 3):
    if first(f"done-{number}"):
        charge(number)
"""


@pytest.mark.parametrize("status", [0, 3])
@pytest.mark.parametrize(("fault", "name"), [("stop", "SIGTERM"), ("interrupt", "SIGINT")])
@pytest.mark.parametrize("window", ["received", "applied", "answered"])
def test_a_task_that_is_asked_to_stop_ends_in_its_own_way_and_is_resumed(
    run_task: RunTask, fault: str, name: str, status: int, window: str
) -> None:
    """It gets the signal at the point, its status is its own, and 0 is no success either."""
    at = f"{fault}:{LONG}@payments.charge#2.{window}"
    (history,) = run_task(scenario(HANDLES.replace("STATUS", str(status))), [at])
    assert ends(history) == [f"1 stopped {status}", "2 exit 0"]
    assert said(history, 1) == [f"asked to stop by {name}"]
    assert [body.fault for _, body in history.landed] == [at]
    assert charged(history) == [(1, "1"), (1, "2"), (2, "3")]
    assert history.completed


@pytest.mark.parametrize(
    ("fault", "number"), [("stop", "SIGTERM"), ("interrupt", "SIGINT")], ids=["stop", "interrupt"]
)
def test_who_ignores_the_signal_is_killed_after_the_grace(
    run_task: RunTask, fault: str, number: str
) -> None:
    """The attempt that would never end dies by SIGKILL, with its children, and is resumed."""
    source = scenario(f"""
        if first():
            signal.signal(signal.{number}, signal.SIG_IGN)
            if os.fork() == 0:
                signal.pause()
            charge(1)
            while True:
                signal.pause()
    """)
    (history,) = run_task(source, [f"{fault}:20ms@payments.charge#1.applied"])
    assert ends(history) == ["1 stopped 9", "2 exit 0"]
    assert len(history.landed) == 1
    assert history.attempts[0][1].leftovers == ()


def test_who_does_not_care_ends_by_the_signal_itself(run_task: RunTask) -> None:
    """Without a handler SIGTERM ends the task at once, long before the grace is over."""
    (history,) = run_task(scenario("charge(1)"), [f"stop:{LONG}@payments.charge#1.received"])
    assert ends(history) == [f"1 stopped {int(signal.SIGTERM)}", "2 exit 0"]


@pytest.mark.skipif(this_abi() is None, reason="system calls are not traced here")
def test_a_stop_at_a_system_call_lands_there(run_task: RunTask) -> None:
    """The traced task gets its signal before the call is made, and handles it."""
    source = scenario("""
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(4))
        if first():
            Path("a").mkdir()
            Path("b").mkdir()
            Path("c").mkdir()
        print(*sorted(p.name for p in Path(".").iterdir()))
    """)
    (history,) = run_task(source, [f"stop:{LONG}@mkdir(b)#1+after"])
    assert ends(history) == ["1 stopped 4", "2 exit 0"]
    assert said(history, 2) == ["a b begun"]


def test_all_of_several_runners_are_asked_to_stop(run_task: RunTask) -> None:
    """Each of them gets the signal, not only the process that waits for them, and which hands it
    on: one of them may have its answer before that.
    """
    source = scenario("""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        runner = next(filter(first, ("one", "two")), "a resume")
        if runner == "two":
            charge(1)
        if runner != "a resume":
            signal.sigwait({signal.SIGTERM})
            say("bye")
            sys.exit(5)
    """)
    (history,) = run_task(source, [f"resumers:2 + stop:{LONG}@payments.charge#1.applied"])
    assert ends(history) == ["1 stopped 5", "2 exit 0"]
    assert said(history, 1) == ["bye", "bye"]


# Pause.

THREE = """
for number in (1, 2, 3):
    if first(f"done-{number}"):
        charge(number)
    probe.point("after")
print("the end")
"""


@pytest.mark.parametrize(
    ("point", "by_the_first"),
    [
        ("payments.charge#2.received", ["1", "2"]),
        ("payments.charge#2.applied", ["1", "2"]),
        ("payments.charge#2.answered", ["1", "2"]),
        ("after#1", ["1"]),
        ("after#3", ["1", "2", "3"]),
    ],
)
def test_a_paused_task_is_overtaken_and_then_goes_on(
    run_task: RunTask, point: str, by_the_first: list[str]
) -> None:
    """Between the pause and the end of the successor the first one does nothing, but that what it
    had asked for is done and answered; then it goes on to its own end.
    """
    (history,) = run_task(scenario(THREE), [f"pause@{point}"])
    assert ends(history) == ["2 exit 0", "1 exit 0"]
    paused = index_of(history, FaultLanded, 1)
    began, ended = index_of(history, AttemptStarted, 2), index_of(history, AttemptEnded, 2)
    assert paused < began < ended < index_of(history, AttemptEnded, 1)
    others = {
        event.body.attempt
        for event in history.events[began : ended + 1]
        if isinstance(event.body, AttemptEnded | EffectApplied | ReplySent | RequestReceived)
    }
    assert others == {2}
    assert [who for who in charged(history) if who[0] == 1] == [(1, n) for n in by_the_first]
    assert [n for _, n in charged(history)] == ["1", "2", "3"]
    assert said(history, 1) == said(history, 2) == ["the end"]
    for request in {body.request for _, body in history.requests if body.attempt == 1}:
        index, reply = history.replies[request]
        assert index < began
        assert (reply.attempt, reply.status) == (1, 200)


def test_a_zombie_repeats_what_its_successor_has_done(run_task: RunTask) -> None:
    """One that checks nothing when it wakes does it again; that is booked as its own doing."""
    source = scenario("""
        for number in (1, 2):
            charge(number)
    """)
    (history,) = run_task(source, ["pause@payments.charge#1.applied"])
    assert charged(history) == [(1, "1"), (2, "1"), (2, "2"), (1, "2")]
    assert asked(history) == [1, 2, 2, 1]


LIMIT_S = 299.0
"""A time limit that no test waits for; no other limit is as long."""

OverWhenSaid = Callable[[int, set[bytes]], list[float | None]]


@pytest.fixture
def over_when_said(monkeypatch: pytest.MonkeyPatch) -> OverWhenSaid:
    """The n-th limit of `LIMIT_S` in a trial is over when all of these words were printed, which
    takes as long as it takes; when the first one would be over at that time is told.
    """
    limits: list[asyncio.Timeout] = []
    first_ends: list[float | None] = []
    number, missing = 0, set[bytes]()
    timeout, keep = asyncio.timeout, Output._keep

    def noted(delay: float | None) -> asyncio.Timeout:
        due = not missing and len(limits) == number
        limit = timeout(0.0 if due and delay == LIMIT_S else delay)
        if delay == LIMIT_S:
            limits.append(limit)
        return limit

    def kept(output: Output, data: bytes) -> None:
        keep(output, data)
        before = len(missing)
        missing.difference_update([word for word in missing if word in data])
        if before and not missing:
            first_ends.append(limits[0].when())
            if len(limits) > number:
                limits[number].reschedule(asyncio.get_running_loop().time())

    def begin(which: int, words: set[bytes]) -> list[float | None]:
        nonlocal number
        number = which
        missing.update(words)
        return first_ends

    monkeypatch.setattr(asyncio, "timeout", noted)
    monkeypatch.setattr(Output, "_keep", kept)
    return begin


HANGS = """
if first():
    charge(1)
    say("went on")
else:
    say("hangs")
    while True:
        signal.pause()
"""


def test_a_successor_that_hangs_is_killed_and_the_first_one_goes_on(
    run_task: RunTask, over_when_said: OverWhenSaid
) -> None:
    """It has a time limit of its own; the paused one has all of its time afterwards."""
    first_ends = over_when_said(1, {b"hangs"})
    (history,) = run_task(scenario(HANGS), ["pause@payments.charge#1.applied"], timeout_s=LIMIT_S)
    assert first_ends == [None]
    assert ends(history) == ["2 timeout 9", "1 exit 0"]
    assert said(history, 2) == ["hangs"]
    assert said(history, 1) == ["went on"]
    assert history.completed


def test_a_successor_that_refuses_leaves_the_work_to_the_first(run_task: RunTask) -> None:
    """As with a lease that is held by a process which is alive: the first one completes it."""
    source = scenario("""
        if not first():
            probe.refused("somebody else is at work")
            sys.exit(1)
        charge(1)
        charge(2)
    """)
    (history,) = run_task(source, ["pause@payments.charge#1.applied"])
    assert ends(history) == ["2 exit 1", "1 exit 0"]
    assert charged(history) == [(1, "1"), (1, "2")]
    assert history.completed
    assert history.stated_end is None


@pytest.mark.parametrize(
    ("schedule", "end"),
    [
        ("pause@payments.charge#1.applied", "1 exit 6"),
        ("pause@payments.charge#1.applied + kill@payments.charge#2.received", "1 killed 9"),
    ],
)
def test_a_trial_is_over_when_the_successor_has_claimed_success(
    run_task: RunTask, schedule: str, end: str
) -> None:
    """However the paused one ends then: nobody resumes a task that was completed."""
    source = scenario("""
        again = first()
        charge(1)
        if again:
            charge(2)
            sys.exit(6)
    """)
    (history,) = run_task(source, [schedule])
    assert ends(history) == ["2 exit 0", end]
    assert history.completed


def test_without_a_success_the_next_attempt_comes_after_both(run_task: RunTask) -> None:
    """Attempts are counted on: the third one resumes what neither of the two has completed."""
    source = scenario("""
        if first("one"):
            charge(1)
            sys.exit(7)
        if first("two"):
            sys.exit(8)
    """)
    (history,) = run_task(source, ["pause@payments.charge#1.applied"])
    assert ends(history) == ["2 exit 8", "1 exit 7", "3 exit 0"]


def test_a_task_that_has_ended_cannot_be_paused(run_task: RunTask) -> None:
    """A pause after a time that finds nobody has not landed, and nobody is started beside it."""
    at = "pause@60000ms"
    (history,) = run_task(scenario("charge(1)"), [at])
    assert ends(history) == ["1 exit 0"]
    assert history.landed == ()


# Twins.


@pytest.mark.parametrize(
    "point", [*(f"payments.charge#1.{w}" for w in ("received", "applied", "answered")), "here#1"]
)
def test_a_twin_runs_beside_the_first_as_the_same_attempt(run_task: RunTask, point: str) -> None:
    """It is started while the first one stands at the point; both print, both do their work."""
    source = scenario("""
        me = "first" if first() else "twin"
        if me == "first":
            probe.point("here")
            charge(1)
            while not Path("twin-was-here").exists():
                os.sched_yield()
        else:
            charge(2)
            Path("twin-was-here").touch()
        say(me)
    """)
    (history,) = run_task(source, [f"twin@{point}"])
    assert ends(history) == ["1 exit 0"]
    assert sorted(said(history, 1)) == ["first", "twin"]
    assert sorted(charged(history)) == [(1, "1"), (1, "2")]
    assert [body.fault for _, body in history.landed] == [f"twin@{point}"]


@pytest.mark.parametrize(("one", "two", "end"), [(1, 0, "1 exit 0"), (0, 1, "1 exit 0")])
def test_of_twins_the_one_that_succeeds_counts(
    run_task: RunTask, one: int, two: int, end: str
) -> None:
    """As of a task of which two copies were started by mistake: one success is enough."""
    source = scenario(f"""
        if not first():
            sys.exit({two})
        charge(1)
        sys.exit({one})
    """)
    (history,) = run_task(source, ["twin@payments.charge#1.applied"])
    assert ends(history) == [end]


def test_a_twin_that_hangs_ends_with_its_attempt(
    run_task: RunTask, over_when_said: OverWhenSaid
) -> None:
    """The time limit of the attempt is that of both."""
    over_when_said(0, {b"hangs", b"went on"})
    (history,) = run_task(
        scenario(HANGS, "attempts_max=1"), ["twin@payments.charge#1.applied"], timeout_s=LIMIT_S
    )
    assert ends(history) == ["1 timeout 9"]
    assert sorted(said(history, 1)) == ["hangs", "went on"]


# A point that is reached before the launcher's word of the start is heard.


@pytest.fixture
def _start_is_heard_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The supervisor goes on after a start only when a fault has landed."""
    landed = asyncio.Event()
    answer, land = Launching._answer, Watch.land

    async def late(launching: Launching, timeout_s: float, doing: str) -> dict[str, Any]:
        heard = await answer(launching, timeout_s, doing)
        if doing == "starting the task":
            await landed.wait()
        return heard

    def noted(watch: Watch, fault: Fault) -> None:
        land(watch, fault)
        landed.set()

    monkeypatch.setattr(Launching, "_answer", late)
    monkeypatch.setattr(Watch, "land", noted)


@pytest.mark.usefixtures("_start_is_heard_late")
@pytest.mark.parametrize("point", ["begun#1", "payments.charge#1.received"])
@pytest.mark.parametrize(
    ("fault", "end"),
    [
        ("kill", ["1 killed 9", "2 exit 0"]),
        ("kill-leader", ["1 killed 9", "2 exit 0"]),
        (f"stop:{LONG}", [f"1 stopped {int(signal.SIGTERM)}", "2 exit 0"]),
        ("pause", ["2 exit 0", "1 exit 0"]),
        ("twin", ["1 exit 0"]),
    ],
)
def test_a_fault_finds_a_task_that_was_quicker_than_the_word_of_its_start(
    run_task: RunTask, fault: str, end: list[str], point: str
) -> None:
    """Which process to signal, and that a second one is to come, is known before a task moves."""
    source = scenario("""
        probe.point("begun")
        charge(1)
    """)
    (history,) = run_task(source, [f"{fault}@{point}"])
    assert ends(history) == end
    assert [body.fault for _, body in history.landed] == [f"{fault}@{point}"]


# Several resumers.

ALL_HERE = """
with open("pids", "a") as pids:
    pids.write(f"{os.getpid()}\\n")
while Path("pids").read_text().count("\\n") < NUMBER:
    os.sched_yield()
say("here")
number = Path("pids").read_text().split().index(str(os.getpid()))
sys.exit(STATUS)
"""


@pytest.mark.parametrize("number", [2, 8])
@pytest.mark.parametrize(
    ("status", "end"),
    [("0 if number == NUMBER - 1 else 3", "exit 0"), ("3 + number", "exit LAST"), ("0", "exit 0")],
)
def test_so_many_runners_are_there_at_once(
    run_task: RunTask, number: int, status: str, end: str
) -> None:
    """None of them ends before all are there; the attempt succeeds where one of them does, and has
    the highest status where none does; what all of them print is kept.
    """
    body = ALL_HERE.replace("STATUS", status).replace("NUMBER", str(number))
    (history,) = run_task(scenario(body, "attempts_max=1"), [f"resumers:{number}"])
    assert ends(history) == [f"1 {end.replace('LAST', str(2 + number))}"]
    assert said(history, 1) == ["here"] * number
    assert [body.fault for _, body in history.landed] == [f"resumers:{number}"]


@pytest.mark.parametrize(
    ("status", "end"), [("101 if number else 0", "exit 101"), ("number", "exit 1")]
)
def test_any_code_that_means_success_is_enough_for_all_runners(
    run_task: RunTask, status: str, end: str
) -> None:
    """And 0 is a failure where it is none of them."""
    body = ALL_HERE.replace("STATUS", status).replace("NUMBER", "2")
    (history,) = run_task(scenario(body, "attempts_max=1, success=(101,)"), ["resumers:2"])
    assert ends(history) == [f"1 {end}"]
    assert history.completed == (end == "exit 101")


def test_a_twin_succeeds_by_the_codes_of_the_scenario(run_task: RunTask) -> None:
    """The attempt ends with the code of the one of the two that claims success."""
    body = "mine = first(); charge(1) if mine else None; sys.exit(0 if mine else 101)"
    source = scenario(body, "attempts_max=1, success=(101, 102)")
    (history,) = run_task(source, ["twin@payments.charge#1.applied"])
    assert (ends(history), history.completed) == (["1 exit 101"], True)


def test_commands_are_multiplied_too(run_task: RunTask) -> None:
    """Any program; and the attempt after that is one process again."""
    wait = "echo x >> begun; while [ $(wc -l < begun) -lt 3 ]; do :; done; echo here; exit 1"
    spec = CommandSpec(command=("sh", "-c", wait), resume=("sh", "-c", "echo alone"))
    (history,) = run_task(spec, ["resumers:3"])
    assert ends(history) == ["1 exit 1", "2 exit 0"]
    assert said(history, 1) == ["here"] * 3
    assert said(history, 2) == ["alone"]


def test_a_kill_meets_all_runners(run_task: RunTask) -> None:
    """Where one of them is at the point, all of them are dead."""
    source = scenario("""
        if first("one"):
            while not Path("two").exists():
                os.sched_yield()
            charge(1)
        elif first("two"):
            signal.pause()
    """)
    (history,) = run_task(source, ["resumers:2 + kill@payments.charge#1.applied"])
    assert ends(history) == ["1 killed 9", "2 exit 0"]


def test_of_several_that_cannot_be_started_one_reason_is_given(run_task: RunTask) -> None:
    """And the trial ends with it."""
    (history,) = run_task(CommandSpec(command=("no-such-program",)), ["resumers:4"])
    assert ends(history) == ["1 not-started 127"]
    assert said(history, 1) == [
        "no-such-program: No such file or directory (no such program on PATH)"
    ]


# What cannot be done together.


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("pause@here#1 + twin@here#2", "one second runner in an attempt, not 2"),
        ("resumers:2 + resumers:3", "one number of resumers"),
        ("pause@here#1 / kill@here#1", "runs while attempt 1 is paused"),
        ("pause@here#1 / clock:+7d", "write - for it"),
        ("pause@here#1 + kill@write(a)#1", "the tracer follows one only"),
        ("resumers:2 + stop:5ms@write(a)#1", "the tracer follows one only"),
        ("twin@here#1 + power:drop@write(a)#1+after", "the tracer follows one only"),
    ],
)
def test_what_cannot_be_done_together_is_refused(
    run_task: RunTask, schedule: str, words: str
) -> None:
    """Before anything is run, with the reason."""
    with pytest.raises(UsageError) as refused:
        run_task(scenario("probe.point('here')"), [schedule])
    assert words in str(refused.value)


# A supervisor that is killed itself.

ALONE = """
import asyncio, sys
from pathlib import Path
from chaoskit.model.schedule import parse_schedule
from chaoskit.model.token import Target
from chaoskit.trial.loading import load
from chaoskit.trial.supervisor import Supervisor

async def main():
    async with Supervisor(load(Target(scenario=sys.argv[1])), 0, Path(sys.argv[2])) as supervisor:
        await supervisor.run(parse_schedule(sys.argv[3]))

asyncio.run(main())
"""

READY = """
with open("pids", "a") as pids:
    pids.write(f"{os.getpid()}\\n")
if first():
    charge(1)
    RUNS_ON
while Path("pids").read_text().count("\\n") < NUMBER:
    os.sched_yield()
if first("told"):  # one alone: the reader may be gone before the next has written, which ends it
    with open(os.environ["READY"], "w") as ready:
        ready.write(Path("pids").read_text())
while True:
    signal.pause()
"""

WAIT_S = 120
"""Far more than a launcher needs to clear up, on however busy a machine."""


@pytest.mark.parametrize(
    ("schedule", "number"),
    [
        ("pause@payments.charge#1.applied", 2),
        ("twin@payments.charge#1.applied", 2),
        ("resumers:8", 8),
    ],
)
def test_a_supervisor_that_is_killed_leaves_nothing(
    tmp_path: Path, schedule: str, number: int
) -> None:
    """In the middle of a pause, of twins, of several resumers: no process, no folder, no socket."""
    gate, work, file = tmp_path / "gate", tmp_path / "work", tmp_path / "task.py"
    os.mkfifo(gate)
    work.mkdir()
    body = READY.replace("NUMBER", str(number)).replace("RUNS_ON", "pass")
    file.write_text(scenario(body, f"env={{'READY': {str(gate)!r}}}"), encoding="utf-8")
    words = [sys.executable, "-c", ALONE, str(file), str(work), schedule]
    with subprocess.Popen(words, start_new_session=True) as supervisor:
        try:
            with gate.open() as ready:  # until somebody has begun beside the first
                pids = [int(pid) for pid in ready.read().split()[:number]]
            runners = [psutil.Process(pid) for pid in set(pids)]
            assert len(runners) == number
            launcher = psutil.Process(supervisor.pid).children()
            assert len(launcher) == 1
        finally:
            supervisor.send_signal(signal.SIGKILL)
    assert not psutil.wait_procs([*runners, *launcher], WAIT_S)[1]
    assert not list(work.iterdir())
