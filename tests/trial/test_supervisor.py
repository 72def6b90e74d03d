"""Trials of real processes: where kills land, what is recorded, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import textwrap
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from chaoskit.explore.survey import expect
from chaoskit.model.errors import ScenarioError, UsageError
from chaoskit.model.events import (
    AttemptEnded,
    Crossed,
    EffectApplied,
    FaultLanded,
    ReplySent,
    RequestReceived,
)
from chaoskit.model.history import History
from chaoskit.model.token import CommandSpec, Target
from chaoskit.trial import attempt as attempts
from chaoskit.trial.conduct import Conduct
from chaoskit.trial.loading import load
from chaoskit.trial.output import HEAD_BYTES, TAIL_BYTES
from chaoskit.trial.state import TrialState
from chaoskit.trial.supervisor import Supervisor
from tests.trial.conftest import RunTask
from tests.trial.faulty import no_process_is_left, standing

TASKS = Path(__file__).parents[1] / "tasks"

SLEEP = f"6{os.getpid():08}"
"""For how many seconds tasks sleep: so long that nobody waits for it, and so that nobody else's
processes, nor a path that they are given, are taken for ours.
"""

ShortFrom = Callable[[int], None]


@pytest.fixture
def short_from(monkeypatch: pytest.MonkeyPatch) -> ShortFrom:
    """From that attempt on the time limit is short; those before have all the time that they need
    on a busy machine.
    """

    def set_limits(attempt: int) -> None:
        def conduct(state: TrialState) -> Conduct:
            return Conduct(0.3 if state.attempts >= attempt else 300.0)

        monkeypatch.setattr(
            TrialState, "conduct", property(conduct, lambda *_: None), raising=False
        )

    return set_limits


CHARGER = """
import http.client, os, urllib.parse
from chaoskit import Scenario, probe

def main():
    url = urllib.parse.urlsplit(os.environ["CHAOSKIT_PAYMENTS_URL"])
    shop = http.client.HTTPConnection(url.hostname, url.port)
    for n in range(1, 4):
        if os.path.exists(f"done-{n}"):
            continue
        probe.point("before")
        shop.request("POST", "/v1/charges", f"amount={n}00&currency=eur&source=tok_visa",
                     {"Authorization": "Bearer sk_test_x",
                      "Content-Type": "application/x-www-form-urlencoded"})
        shop.getresponse().read()
        open(f"done-{n}", "w").close()
        probe.point("after")

scenario = Scenario(task=main, services=("payments",))
"""


def bodies(history: History, attempt: int) -> list[str]:
    """The kinds of events of one attempt, in order."""
    return [
        type(event.body).__name__
        for event in history.events
        if getattr(event.body, "attempt", None) == attempt
    ]


def effects(history: History) -> list[str]:
    """The amounts that were charged, in order."""
    return [dict(body.effect.fields)["amount"] for _, body in history.effects]


@pytest.mark.parametrize(
    ("window", "replies", "charged"),
    [
        ("received", 0, ["100", "200", "300"]),
        ("applied", 0, ["100", "200", "200", "300"]),
        ("answered", 1, ["100", "200", "200", "300"]),
    ],
)
def test_a_kill_lands_in_its_window_and_nowhere_else(
    run_task: RunTask, window: str, replies: int, charged: list[str]
) -> None:
    """received: nothing is changed; applied: changed, no answer; answered: sent and never read."""
    (history,) = run_task(CHARGER, [f"kill@payments.charge#2.{window}"])
    assert [body.fault for _, body in history.landed] == [f"kill@payments.charge#2.{window}"]
    second = [r for _, r in history.requests if (r.attempt, r.ordinal) == (1, 2)]
    answered = [b for _, b in history.of(ReplySent) if b.request == second[0].request]
    assert len(answered) == replies
    assert effects(history) == charged
    assert [(b.how, b.code) for _, b in history.attempts] == [("killed", 9), ("exit", 0)]


def test_events_are_in_the_order_in_which_things_happened(run_task: RunTask) -> None:
    """A crossing that the task passed before a request is recorded before that request."""
    (history,) = run_task(CHARGER, ["none"])
    one = ["Crossed", "RequestReceived", "EffectApplied", "ReplySent", "Crossed"]
    assert bodies(history, 1) == ["AttemptStarted", *one * 3, "AttemptEnded"]
    assert [event.index for event in history.events] == list(range(len(history.events)))


def test_a_kill_at_a_crossing_is_exact(run_task: RunTask) -> None:
    """After a kill at a crossing the task has done nothing that stands behind it."""
    for ordinal in (1, 2, 3):
        (history,) = run_task(CHARGER, [f"kill@after#{ordinal}"])
        assert effects(history) == ["100", "200", "300"]
        crossed = [b for _, b in history.of(Crossed) if b.attempt == 1 and b.name == "after"]
        assert len(crossed) == ordinal
        requests = [b for _, b in history.of(RequestReceived) if b.attempt == 1]
        assert len(requests) == ordinal


def test_kills_in_the_resume_land_too(run_task: RunTask) -> None:
    """A schedule of three attempts kills twice, and the third ends by itself."""
    text = "kill@payments.charge#2.received / kill@payments.charge#1.received"
    (history,) = run_task(CHARGER, [text])
    assert [b.how for _, b in history.attempts] == ["killed", "killed", "exit"]
    assert effects(history) == ["100", "200", "300"]


def test_a_kill_after_a_time_lands_while_the_task_runs(
    run_task: RunTask, short_from: ShortFrom
) -> None:
    """A time is counted from the start, and the process is dead by signal 9."""
    short_from(4)
    spec = CommandSpec(command=("sleep", "600"))
    (history,) = run_task(spec, ["kill@50ms / kill@10ms / kill@10ms"])
    landed = [b.fault for _, b in history.landed]
    assert landed == ["kill@50ms", "kill@10ms", "kill@10ms"]
    assert [b.how for _, b in history.attempts][:3] == ["killed"] * 3


def test_a_point_that_is_not_passed_does_not_land(run_task: RunTask) -> None:
    """A schedule whose point never comes leaves no trace of a fault."""
    (history,) = run_task(CHARGER, ["kill@payments.charge#4.applied"])
    assert not list(history.of(FaultLanded))
    assert history.completed


def test_trials_do_not_see_each_other(run_task: RunTask) -> None:
    """Each trial begins with an empty work folder and empty books."""
    first, second = run_task(CHARGER, ["kill@payments.charge#3.applied", "none"])
    assert len(effects(first)) == 4
    assert effects(second) == ["100", "200", "300"]


def test_an_unmodified_bash_script_is_killed_and_resumed(run_task: RunTask) -> None:
    """A shell script finds the service by a placeholder; its keyed charges survive every window."""
    words = ("bash", str(TASKS / "task.sh"), "{payments.url}")
    schedules = [f"kill@payments.charge#2.{w}" for w in ("received", "applied", "answered")]
    for history in run_task(CommandSpec(command=words, services=("payments",)), schedules):
        assert history.completed
        assert sorted(effects(history)) == ["100", "200", "300"]
    naive = CommandSpec(command=(*words, "naive"), services=("payments",))
    (history,) = run_task(naive, ["kill@payments.charge#2.applied"])
    assert sorted(effects(history)) == ["100", "200", "200", "300"]


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_an_unmodified_node_program_is_killed_and_resumed(run_task: RunTask) -> None:
    """A Node program finds the mail service by a variable of its own name."""
    words = ("node", str(TASKS / "task.mjs"))
    spec = CommandSpec(command=words, services=("email",), env={"MAIL_API": "{email.url}"})
    keyed, naive = (
        run_task(s, ["kill@email.send#2.applied"])[0]
        for s in (
            spec,
            CommandSpec(
                command=(*words, "--naive"), services=("email",), env={"MAIL_API": "{email.url}"}
            ),
        )
    )
    assert (len(keyed.effects), len(naive.effects)) == (3, 4)
    assert keyed.completed
    assert naive.completed


def test_the_resume_command_replaces_the_first_one(run_task: RunTask) -> None:
    """From the second attempt on the resume command is run."""
    spec = CommandSpec(command=("sleep", "600"), resume=("sh", "-c", "echo resumed"))
    (history,) = run_task(spec, ["kill@20ms"])
    assert [b.output_tail for _, b in history.attempts] == ["", "resumed\n"]


def test_the_whole_tree_dies_with_the_task(run_task: RunTask) -> None:
    """Children in sessions of their own are killed together with the task."""
    source = f"""
    import subprocess, sys
    from chaoskit import Scenario, probe
    def main():
        child = subprocess.Popen(["sleep", "{SLEEP}"], start_new_session=True)
        open("pid", "w").write(str(child.pid))
        probe.point("spawned")
    scenario = Scenario(task=main, outputs=("pid",))
    """
    (history,) = run_task(source, ["kill@spawned#1"])
    assert history.attempts[0][1].how == "killed"
    assert not _sleeping()


def test_children_that_outlive_the_task_are_named_and_killed(run_task: RunTask) -> None:
    """A daemon that detached itself twice is reported by its command line and is not left."""
    daemon = f"setsid sh -c 'sleep {SLEEP} & sleep {SLEEP}' & exit 0"
    spec = CommandSpec(command=("sh", "-c", daemon))
    (history,) = run_task(spec, ["none"])
    assert history.last.code == 0
    assert any(f"sleep {SLEEP}" in line for line in history.last.leftovers)
    assert not _sleeping()


def test_a_task_that_ignores_sigterm_and_hangs_is_bounded(
    run_task: RunTask, short_from: ShortFrom
) -> None:
    """A hanging resume ends at the time limit by SIGKILL, and the trial after a few of them."""
    short_from(2)
    source = f"""
    import signal, subprocess
    from chaoskit import Scenario, probe
    def main():
        probe.point("here")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.run(["sleep", "{SLEEP}"])
    scenario = Scenario(task=main)
    """
    (history,) = run_task(source, ["kill@here#1"])
    assert [b.how for _, b in history.attempts] == ["killed", *["timeout"] * 4]
    assert not _sleeping()


def test_a_hundred_megabytes_of_output_are_bounded(run_task: RunTask) -> None:
    """All output is read, and only its head and its tail are kept."""
    script = "echo first; head -c 100000000 /dev/zero | tr '\\0' x; echo last"
    (history,) = run_task(CommandSpec(command=("sh", "-c", script)), ["none"])
    assert history.last.output_bytes == 100_000_000 + len("first\nlast\n")
    assert history.last.output_tail.endswith("last\n")
    assert len(history.last.output_tail) <= HEAD_BYTES + TAIL_BYTES + 200


def test_bytes_that_are_no_text_are_shown_escaped(run_task: RunTask) -> None:
    """Invalid UTF-8 on standard output does no harm."""
    (history,) = run_task(CommandSpec(command=("printf", r"a\377b")), ["none"])
    assert history.last.output_tail == r"a\xffb"


def test_a_task_that_ends_by_a_signal_of_its_own_is_not_a_landed_kill(run_task: RunTask) -> None:
    """Dying by SIGKILL without our doing is told apart from our kill."""
    (history,) = run_task(CommandSpec(command=("sh", "-c", "kill -9 $$")), ["none"])
    assert {(b.how, b.code) for _, b in history.attempts} == {("signal", int(signal.SIGKILL))}


def test_a_command_that_does_not_exist_is_said(run_task: RunTask) -> None:
    """A program that cannot be started ends the trial at once, with the reason."""
    (history,) = run_task(CommandSpec(command=("no-such-program",)), ["none"])
    (_, ended) = history.attempts[0]
    assert isinstance(ended, AttemptEnded)
    assert ended.how == "not-started"
    assert "no-such-program" in ended.output_tail


def test_a_scenario_that_cannot_be_imported_is_the_users_error(run_task: RunTask) -> None:
    """The message holds what Python said."""
    with pytest.raises(ScenarioError, match="ZeroDivisionError"):
        run_task("import chaoskit\n1 / 0", ["none"])


@pytest.mark.parametrize("text", ["{payment.url}", "{paymnts.url}", "{payments.urls}"])
def test_a_misspelt_placeholder_names_the_right_one(run_task: RunTask, text: str) -> None:
    """It is not passed on as text, which would send the task somewhere else."""
    spec = CommandSpec(command=("true", text), services=("payments",))
    with pytest.raises(UsageError, match=r"unknown placeholder .*payments\.url"):
        run_task(spec, ["none"])


def test_an_undisturbed_run_that_does_not_end_is_not_started_again(run_task: RunTask) -> None:
    """One time limit tells; a second attempt would take as long and tell the same."""
    spec = CommandSpec(command=("sleep", "1000"), services=("payments",))
    (history,) = run_task(spec, ["none"], timeout_s=0.5)
    assert [(body.attempt, body.how) for _, body in history.attempts] == [(1, "timeout")]


def test_a_placeholder_of_a_service_that_is_not_started_names_the_fix(run_task: RunTask) -> None:
    """The error says which service to add, and a misspelled part names the nearest."""
    with pytest.raises(UsageError, match="--services"):
        run_task(CommandSpec(command=("echo", "{payments.url}")), ["none"])
    with pytest.raises(UsageError, match=r"payments\.url"):
        run_task(CommandSpec(command=("echo", "{payments.ulr}"), services=("payments",)), ["none"])


def test_other_braces_belong_to_the_task(run_task: RunTask) -> None:
    """A word with braces that are no placeholder of ours reaches the task as it is."""
    spec = CommandSpec(command=("echo", "{print}", "${HOME}", "{a.b}", "{state}"))
    (history,) = run_task(spec, ["none"])
    words = history.last.output_tail.split()
    assert words[:3] == ["{print}", "${HOME}", "{a.b}"]
    assert words[3].endswith("/state")


def test_an_async_task_is_run_to_its_end(run_task: RunTask) -> None:
    """A task function may be a coroutine function."""
    source = """
    import asyncio
    from chaoskit import Scenario
    async def main():
        await asyncio.sleep(0)
        print("awaited")
    scenario = Scenario(task=main)
    """
    (history,) = run_task(source, ["none"])
    assert history.last.output_tail == "awaited\n"


def test_a_refusal_that_the_task_states_ends_the_trial(run_task: RunTask) -> None:
    """A stated end with a failure status is final: it is not tried again."""
    source = """
    import sys
    from chaoskit import Scenario, probe
    def main():
        probe.refused("other inputs")
        sys.exit(75)
    scenario = Scenario(task=main)
    """
    (history,) = run_task(source, ["none"])
    assert len(history.attempts) == 1
    assert history.stated_end is not None
    assert history.stated_end.reason == "other inputs"


def test_a_refusal_after_a_kill_alone_may_be_over_at_the_next_resume(run_task: RunTask) -> None:
    """It is resumed again like a failure, and no further than that; not where it is promised."""
    source = """
    import pathlib, sys
    from chaoskit import Scenario, probe
    def main():
        lives = pathlib.Path("lives")
        lives.write_text((lives.read_text() if lives.exists() else "") + "x")
        probe.point("begun")
        if len(lives.read_text()) < UNTIL:
            probe.refused("not yet")
            sys.exit(75)
    scenario = Scenario(task=main, attempts_max=3, refusals="HOW")
    """

    def lives(until: int, how: str) -> tuple[int, bool]:
        task = source.replace("UNTIL", str(until)).replace("HOW", how)
        (history,) = run_task(task, ["kill@begun#1"])
        return len(history.attempts), history.completed

    assert lives(3, "stuck") == (3, True)
    assert lives(9, "stuck") == (4, False)
    assert lives(3, "allowed") == (2, False)


@pytest.mark.parametrize(("code", "lives"), [(101, 1), (0, 1), (7, 2)])
def test_a_task_has_succeeded_where_its_exit_code_says_so(
    run_task: RunTask, code: int, lives: int
) -> None:
    """Each code that the scenario names is success; after any other one it is resumed, as often as
    it says.
    """
    spec = CommandSpec(command=("sh", "-c", f"exit {code}"), success=(0, 101), attempts_max=2)
    (history,) = run_task(spec, ["none"])
    assert (len(history.attempts), history.completed) == (lives, code != 7)
    (history,) = run_task(CommandSpec(command=("sh", "-c", "exit 101")), ["none"])
    assert (len(history.attempts), history.completed) == (4, False)


def test_effects_that_are_ignored_are_booked_and_not_judged(run_task: RunTask) -> None:
    """They stand in the history, marked; no request wants them, and no checker sees them."""
    ignoring = 'scenario = Scenario(ignore=("pay*.charge",), task='
    (history,) = run_task(CHARGER.replace("scenario = Scenario(task=", ignoring), ["none"])
    booked = [body for _, body in history.of(EffectApplied)]
    assert booked
    assert all(body.ignored for body in booked)
    assert history.ignored == {"payments.charge": len(booked)}
    assert not history.effects
    assert all(body.ignored and body.wants is None for _, body in history.requests)


def test_effects_of_a_request_in_flight_at_the_kill_are_booked_before_the_resume(
    run_task: RunTask,
) -> None:
    """What a dead task had sent is read to its end before the next attempt begins."""
    source = """
    import os, socket, urllib.parse
    from chaoskit import Scenario, probe
    def main():
        if os.path.exists("sent"):
            return
        url = urllib.parse.urlsplit(os.environ["CHAOSKIT_PAYMENTS_URL"])
        body = b"amount=500&currency=eur&source=tok_visa"
        head = (b"POST /v1/charges HTTP/1.1\\r\\nHost: x\\r\\nAuthorization: Bearer sk_test_x\\r\\n"
                b"Content-Type: application/x-www-form-urlencoded\\r\\n"
                b"Content-Length: %d\\r\\n\\r\\n" % len(body))
        shop = socket.create_connection((url.hostname, url.port))
        open("sent", "w").close()
        shop.sendall(head + body)
        probe.point("sent")
    scenario = Scenario(task=main, services=("payments",))
    """
    for history in run_task(source, ["kill@sent#1"] * 20):
        (index, _), (end, _) = history.effects[0], history.attempts[0]
        assert index < end


def test_no_process_is_left(run_task: RunTask) -> None:
    """After a supervisor has closed, its launcher is gone (the fixture looks at the folders)."""
    before = standing()  # servers, of which the children come and go
    run_task(CHARGER, ["kill@payments.charge#2.applied"])
    assert no_process_is_left(before)


def _sleeping() -> list[psutil.Process]:
    """The processes of this test that sleep for so long."""
    return [process for process in psutil.process_iter() if SLEEP in _words(process)]


def _words(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def test_effects_of_the_database_are_booked_per_attempt(run_task: RunTask) -> None:
    """Rows committed before the kill belong to the killed attempt, and stay."""
    source = """
    import os, sqlite3
    from chaoskit import Scenario, probe
    def main():
        db = sqlite3.connect(os.environ["CHAOSKIT_DATABASE_URL"].removeprefix("sqlite:///"))
        for n in range(3):
            with db:
                db.execute("INSERT OR IGNORE INTO t VALUES (?)", (n,))
            probe.point("row")
    scenario = Scenario(task=main, services=("database",), tables="CREATE TABLE t (n PRIMARY KEY);")
    """
    (history,) = run_task(source, ["kill@row#2"])
    booked = [(b.attempt, dict(b.effect.fields)["n"]) for _, b in history.of(EffectApplied)]
    assert booked == [(1, "0"), (1, "1"), (2, "2")]


def test_each_attempt_imports_the_scenario_anew(run_task: RunTask) -> None:
    """What a module makes when it is imported belongs to one process: a resume makes it again."""
    source = """
    import os, uuid, random
    from chaoskit import Scenario, probe
    RUN, CHANCE = uuid.uuid4().hex, random.Random()
    def main():
        print(RUN, CHANCE.random())
        probe.point("printed")
        os.path.exists("x")
    scenario = Scenario(task=main)
    """
    seen: set[str] = set()
    for history in run_task(source, ["none"] * 3):
        seen.update(history.last.output_tail.split())
    assert len(seen) == 6


def survey(file: Path) -> tuple[History, History]:
    """The two undisturbed runs of a scenario file."""

    async def go() -> tuple[History, History]:
        async with Supervisor(load(Target(scenario=str(file))), seed=0) as supervisor:
            return await supervisor.survey()

    return asyncio.run(go())


GATHER = """
import asyncio, os, urllib.parse
from chaoskit import Scenario

async def charge(n, url):
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    body = f"amount={n}00&currency=eur&source=tok_visa"
    writer.write((f"POST /v1/charges HTTP/1.1\\r\\nHost: x\\r\\n"
                  f"Authorization: Bearer sk_test_x\\r\\n"
                  f"Content-Type: application/x-www-form-urlencoded\\r\\n"
                  f"Content-Length: {len(body)}\\r\\n\\r\\n{body}").encode())
    await reader.readuntil(b"}")
    writer.close()

async def main():
    url = urllib.parse.urlsplit(os.environ["CHAOSKIT_PAYMENTS_URL"])
    await WAY

scenario = Scenario(task=main, services=("payments",))
"""


@pytest.mark.parametrize(
    ("way", "ordered"),
    [
        ("asyncio.gather(*(charge(n, url) for n in range(1, 6)))", False),
        ("charge(1, url); await charge(2, url); await charge(3, url)", True),
    ],
)
def test_requests_that_are_sent_together_are_seen_to_overlap(
    tmp_path: Path, way: str, ordered: bool
) -> None:
    """However fast the services are, a concurrent task is not taken for a sequential one."""
    file = tmp_path / f"gather_{ordered}.py"
    file.write_text(GATHER.replace("WAY", way).replace("\\\\", "\\"), encoding="utf-8")
    first, second = survey(file)
    assert expect(first, second, load(Target(scenario=str(file))).scenario).ordered is ordered


def test_the_second_survey_makes_other_ids(tmp_path: Path) -> None:
    """A field that only repeats an id of the service's is seen to vary."""
    file = tmp_path / "ids.py"
    file.write_text(textwrap.dedent(CHARGER), encoding="utf-8")
    first, second = survey(file)
    refs = [{body.effect.ref for _, body in history.effects} for history in (first, second)]
    assert len(refs[0]) == len(refs[1]) == 3
    assert not refs[0] & refs[1]


def test_a_child_that_is_about_to_end_is_answered_and_no_leftover(
    run_task: RunTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While chaoskit waits for a child to end, the services go on answering it."""
    monkeypatch.setattr(attempts, "GRACE_S", 300.0)  # it takes what it takes on a busy machine
    script = (
        "curl -sS -u sk_test_x: {payments.url}/v1/charges -d amount=100 -d currency=eur "
        "-d source=tok_visa >/dev/null & exit 0"
    )
    (history,) = run_task(
        CommandSpec(command=("sh", "-c", script), services=("payments",)), ["none"]
    )
    assert history.last.leftovers == ()
    assert effects(history) == ["100"]


def test_a_process_that_renews_itself_is_bounded(run_task: RunTask) -> None:
    """A chain of processes, each of which starts the next, is ended and named."""
    chain = "f() { sleep 0.02; (f) & }; (f) & exit 0"
    (history,) = run_task(CommandSpec(command=("bash", "-c", chain)), ["none"])
    assert history.last.leftovers
