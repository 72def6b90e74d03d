"""Trials from snapshots: what they show is what real kills show, and what guards that."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from chaoskit.campaign.events import Finished
from chaoskit.campaign.mechanisms import best
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run
from chaoskit.campaign.store import REFUTED, Store
from chaoskit.campaign.trials import Darkroom, Result, doubted
from chaoskit.explore.classes import class_of
from chaoskit.explore.plan import first_wave, sweep
from chaoskit.explore.survey import expect
from chaoskit.model.events import AttemptEnded, ReplySent, RequestReceived
from chaoskit.model.findings import Finding, Judgement
from chaoskit.model.history import History
from chaoskit.model.schedule import Schedule, parse_schedule
from chaoskit.model.token import Target
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.trial.loading import load
from chaoskit.trial.supervisor import Supervisor
from tests.marks import rare

ROOT = Path(__file__).resolve().parents[2]
SOUND = Target(scenario=str(ROOT / "scenarios/sound/forty_calls.py:few"))


def campaign(tmp_path: Path, name: str, **options: object) -> Summary:
    """A whole campaign over one of the project's scenarios."""
    target = Target(scenario=str(ROOT / "scenarios" / f"{name}.py"))
    chosen = Options(target=target, runs=str(tmp_path), **options)  # type: ignore[arg-type]
    last = [event for event in run(chosen) if isinstance(event, Finished)][-1]
    with Store(last.folder) as store:
        return summarize(store)


@pytest.mark.parametrize(
    "name",
    [
        "broken/record_after_effect",
        rare("broken/no_checkpoint"),
        rare("broken/half_applied"),
        rare("broken/done_before_the_end"),
        rare("broken/lagging_record"),
        rare("broken/stale_lock"),
        rare("broken/no_outputs"),
    ],
)
def test_snapshots_find_what_real_kills_find(tmp_path: Path, name: str) -> None:
    """The same findings at the same points, each of them confirmed by a real kill."""
    real = campaign(tmp_path / "real", name, snapshots=False)
    copied = campaign(tmp_path / "copied", name)
    assert [(f.kind, f.schedule, f.fingerprint) for f in copied.findings] == [
        (f.kind, f.schedule, f.fingerprint) for f in real.findings
    ]
    assert copied.trials == real.trials == real.real_kills
    assert copied.points == real.points
    assert confirmed(copied) >= {f.fingerprint for f in copied.findings}


def confirmed(summary: Summary) -> set[str]:
    """The findings that some real kill showed."""
    with Store(Path(summary.run)) as store:
        return {f.fingerprint for t in store.trials() if t.real for f in t.judgement.findings}


@pytest.mark.exhaustive
def test_a_sound_task_is_valid_from_snapshots_also_with_two_kills(tmp_path: Path) -> None:
    """No copy shows anything on the forty calls, and few processes are killed for it."""
    summary = campaign(tmp_path, "sound/forty_calls", max_points=48, depth=2, jobs=2, in_flight=())
    assert summary.verdict == "VALID"
    assert summary.trials == 96
    assert summary.real_kills < summary.trials / 2


def plain(history: History) -> list[object]:
    """What must be the same in both ways: all but times, outputs and numbers of requests."""
    bodies: list[object] = []
    for event in history.events:
        body = event.body
        if isinstance(body, RequestReceived | ReplySent):
            body = msgspec.structs.replace(body, request=0)
        if isinstance(body, AttemptEnded):
            body = msgspec.structs.replace(body, seconds=0.0, output_bytes=0, output_tail="")
        bodies.append(body)
    return bodies


def told(tmp_path: Path, name: str, texts: Sequence[str] = ()) -> list[tuple[Schedule, Result]]:
    """Trials of a scenario by a darkroom: of every window and crossing, or these."""
    loaded = load(Target(scenario=str(ROOT / "scenarios" / f"{name}.py")))

    async def go() -> list[tuple[Schedule, Result]]:
        async with Supervisor(loaded, 0, tmp_path) as supervisor:
            first, second = await supervisor.survey()
            expectation = expect(first, second, loaded.scenario)
            found = sweep((first, second), ("windows", "crossings"))[0]
            schedules = [parse_schedule(text) for text in texts] or first_wave(found)
            darkroom = Darkroom(supervisor, schedules, expectation)
            results = []
            for schedule in schedules:
                result = await darkroom.trial(schedule, lambda *_: None)
                results.append((schedule, result))
                history = History.decode(result.history)
                assert plain(history) == plain(await supervisor.run(schedule)), str(schedule)
            return results

    return asyncio.run(go())


def test_a_history_from_a_snapshot_is_the_history_of_the_kill(tmp_path: Path) -> None:
    """Event for event, for every point of a task, told by its own resume or by a twin's."""
    results = told(tmp_path, "broken/record_before_effect")
    assert sum(not result.real for _, result in results) > len(results) / 3
    assert any(result.shared for _, result in results)
    for _, result in results:
        numbers = [body.request for _, body in History.decode(result.history).requests]
        assert len(set(numbers)) == len(numbers)


def judged(judgement: Judgement) -> Result:
    """A real trial with this judgement."""
    return Result(history=b"", judgement=judgement)


def test_a_copy_that_says_something_else_than_the_kill_is_a_doubt() -> None:
    """The real kills' findings count, and the difference makes a VALID one UNKNOWN."""
    finding = Finding(
        kind="lost_effect", operation="a.b", subject="s", expected="e", seen="s", because="b"
    )
    bad, good = Judgement("INVALID", (finding,)), Judgement("VALID")

    def after(copy: Judgement, *real: Judgement) -> Judgement:
        truth, *again = map(judged, real)
        judgement = doubted(Schedule(), copy, truth, again).judgement
        assert judgement is not None
        return judgement

    assert after(bad, good, good, good).verdict == "UNKNOWN"
    assert after(bad, good, good, good).findings == ()
    assert "showed lost_effect, a real kill nothing" in after(bad, good, good).unknowns[0]
    assert after(good, bad, good).verdict == "INVALID"
    assert after(good, bad, good).findings == (finding,)
    assert after(bad, good, bad).verdict == "INVALID"
    assert after(bad, good, bad).findings == (finding,)


@pytest.mark.parametrize(
    ("text", "copied"),
    [
        ("kill@payments.charge#2.received", True),
        ("late:1@payments.charge#2.received", True),
        ("kill@payments.charge#1.received / kill@payments.charge#1.received", True),
        ("kill-leader@payments.charge#2.received", False),
        ("kill@payments.charge#2.received + kill@payments.charge#3.received", False),
        ("- / kill@payments.charge#1.received", False),
        ("none", False),
    ],
)
def test_snapshots_are_taken_only_where_they_are_exact(
    tmp_path: Path, text: str, *, copied: bool
) -> None:
    """Not for several faults in one attempt, nor where a part of the task lives on."""
    (result,) = [result for _, result in told(tmp_path, "broken/record_before_effect", [text])]
    assert bool(result.world) is copied
    assert result.real or copied


MOST = 12
"""Trials of a campaign, in which all that matters is how they are run."""

TASKS = {
    "in order": ("charge(1); await charge(2)", "", ""),
    "at once": (
        "asyncio.gather(*map(charge, SystemRandom().sample(range(1, 21), 20)))",
        "",
        "requests overlap, or come in another order each time",
    ),
    "elsewhere": (
        "charge(1)",
        "open(ELSEWHERE, 'w').close()",
        "the task changes what is not restored: ELSEWHERE",
    ),
}

SOURCE = """
import asyncio, os, urllib.parse
from random import SystemRandom
from chaoskit import Scenario

async def charge(n):
    url = urllib.parse.urlsplit(os.environ["CHAOSKIT_PAYMENTS_URL"])
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    body = f"amount={n}00&currency=eur&source=tok_visa"
    writer.write((f"POST /v1/charges HTTP/1.1\\r\\nHost: x\\r\\n"
                  f"Authorization: Bearer sk_test_x\\r\\nIdempotency-Key: {n}\\r\\n"
                  f"Content-Type: application/x-www-form-urlencoded\\r\\n"
                  f"Content-Length: {len(body)}\\r\\n\\r\\n{body}").encode())
    await reader.readuntil(b"}")
    writer.close()

async def main():
    ALSO
    await WAY

scenario = Scenario(task=main, services=("payments",))
"""


@pytest.mark.parametrize("name", TASKS)
def test_a_campaign_says_why_it_takes_no_snapshots(tmp_path: Path, name: str) -> None:
    """Where requests overlap, or files change that are not restored, every trial is a real kill.

    Whether they overlap is up to the machine; that twenty come in one order twice is not to be met.
    """
    way, also, why = (text.replace("ELSEWHERE", str(tmp_path / "x")) for text in TASKS[name])
    also = also.replace(str(tmp_path / "x"), repr(str(tmp_path / "x")))
    file = tmp_path / "task.py"
    file.write_text(SOURCE.replace("WAY", way).replace("ALSO", also), encoding="utf-8")
    options = Options(
        target=Target(scenario=str(file)),
        mechanisms=("calls", "windows"),
        runs=str(tmp_path),
        max_points=MOST,
    )
    last = [event for event in run(options) if isinstance(event, Finished)][-1]
    with Store(last.folder) as store:
        assert store.get("real") == why
        real = [trial.real for trial in store.trials() if trial.wave == 1]
        assert all(real) is bool(why)
        assert len(real) > 5


ONLY_LATER = {
    "a file elsewhere": ("open(ELSEWHERE, 'w').close()", "the task changes what is not restored"),
    "a queue": (
        "LIBC.msgctl(LIBC.msgget(QUEUE, 0o1600), 0, None)",  # nothing of it stays on the machine
        "the task makes what is no file and outlives it",
    ),
    "a ring": ("LIBC.syscall(425, 8, ctypes.create_string_buffer(512))", "calls by io_uring"),
}


@pytest.mark.parametrize("name", ONLY_LATER)
def test_what_a_task_does_only_when_it_resumes_ends_copies_too(tmp_path: Path, name: str) -> None:
    """No baseline does it; the first resume that does makes every trial a real kill. Its calls are
    looked at where it is killed again, which is where a copy of its world would be taken.
    """
    deed, why = ONLY_LATER[name]
    also = f"""import ctypes
    LIBC = ctypes.CDLL(None)
    if os.path.exists("begun"):
        {deed.replace("ELSEWHERE", repr(str(tmp_path / "x"))).replace("QUEUE", str(os.getpid()))}
    open("begun", "w").close()
"""
    file = tmp_path / "task.py"
    source = SOURCE.replace("WAY", "charge(1); await charge(2)").replace("ALSO", also)
    file.write_text(source, encoding="utf-8")
    options = Options(
        target=Target(scenario=str(file)),
        mechanisms=best(),
        runs=str(tmp_path),
        max_points=MOST,
        depth=2,
    )
    *_, last = run(options)
    assert isinstance(last, Finished)
    with Store(last.folder) as store:
        trials = [trial for trial in store.trials() if trial.wave == 1]
        assert why in (store.get("real") or "")
    assert len(trials) > 5
    assert all(trial.real for trial in trials)


REMEMBERS = """
import http.client, json, os, urllib.parse
from chaoskit import Scenario

def main():
    if not os.path.exists("known.json"):
        with open("new", "w") as file:
            json.dump({"here": os.getcwd(), "url": os.environ["CHAOSKIT_PAYMENTS_URL"]}, file)
        os.rename("new", "known.json")
    with open("known.json") as file:
        known = json.load(file)
    url = urllib.parse.urlsplit(known["url"])
    for n in range(1, 5):
        done = os.path.join(known["here"], f"done-{n}")
        if not os.path.exists(done):
            shop = http.client.HTTPConnection(url.hostname, url.port)
            shop.request("POST", "/v1/charges", f"amount={n}00&currency=eur&source=tok_visa",
                         {"Authorization": "Bearer sk_test_x", "Idempotency-Key": f"key-{n}",
                          "Content-Type": "application/x-www-form-urlencoded"})
            assert shop.getresponse().status == 200
            open(done, "w").close()

scenario = Scenario(task=main, services=("payments",))
"""


def test_a_task_may_store_paths_and_addresses_whichever_worker_goes_on(tmp_path: Path) -> None:
    """Each worker goes on from its own copies: folder and ports in them are still there."""
    file = tmp_path / "remembers.py"
    file.write_text(REMEMBERS)
    options = Options(
        target=Target(scenario=str(file)),
        mechanisms=best(),
        runs=str(tmp_path / "runs"),
        jobs=2,
    )
    *_, last = run(options)
    assert isinstance(last, Finished)
    with Store(last.folder) as store:
        judged = {trial.schedule: trial.judgement for trial in store.trials()}
    assert len(judged) > 20
    wrong = {text: one.unknowns for text, one in judged.items() if one.verdict != "VALID"}
    assert not wrong


def test_each_class_of_points_is_looked_at_by_a_real_kill(tmp_path: Path) -> None:
    """Also where a limit leaves few of the trials, and with two workers."""
    for jobs in (1, 2):
        runs = str(tmp_path / str(jobs))
        options = Options(
            target=SOUND, runs=runs, mechanisms=best(), max_trials=30, seed=jobs, jobs=jobs
        )
        *_, last = run(options)
        assert isinstance(last, Finished)
        with Store(last.folder) as store:
            trials = [t for t in store.trials() if t.wave and t.world]
        assert len(trials) > 6
        assert {t.judgement.verdict for t in trials} == {"VALID"}
        classes = {class_of(parse_schedule(t.schedule)) for t in trials}
        assert {class_of(parse_schedule(t.schedule)) for t in trials if t.real} == classes


def test_an_interrupted_campaign_forgets_copies_that_were_refuted(tmp_path: Path) -> None:
    """It goes on by real kills, with none of what copies showed."""
    options = Options(target=SOUND, runs=str(tmp_path), mechanisms=best(), max_points=12)
    *_, last = run(options)
    assert isinstance(last, Finished)
    with Store(last.folder) as store:
        before = list(store.trials())
        store.put(REFUTED, "a copy of the world at none")
    with sqlite3.connect(last.folder / "campaign.sqlite") as database:
        database.execute("DELETE FROM meta WHERE key = 'finished'")
    assert not all(t.real for t in before)
    *_, again = run(options)
    assert isinstance(again, Finished)
    assert again.folder == last.folder
    with Store(last.folder) as store:
        after = list(store.trials())
    assert all(t.real for t in after)
    assert [t.schedule for t in after] == [t.schedule for t in before]


def test_a_late_request_of_an_earlier_attempt_is_in_no_copy() -> None:
    """Such a trial is a real kill; one of the last attempt goes on from a copy."""
    late = "late:1@payments.charge#1.received"
    assert parse_schedule(f"kill@open(a)#1 / {late}").copied
    assert not parse_schedule(f"{late} / kill@open(a)#1").copied
