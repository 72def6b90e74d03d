"""Trials from snapshots: what they show is what real kills show, and what guards that."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from chaoskit.campaign.run import Finished, Options, run
from chaoskit.campaign.store import Store
from chaoskit.campaign.trials import Result, _confirmed, fits_snapshots, snapshot_trials
from chaoskit.explore.plan import first_wave, sweep
from chaoskit.explore.survey import expect
from chaoskit.model.events import AttemptEnded, ReplySent, RequestReceived
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Finding, Judgement
from chaoskit.model.history import History
from chaoskit.model.schedule import Schedule, parse_schedule
from chaoskit.model.token import CommandSpec, Target
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.trial.loading import load
from chaoskit.trial.supervisor import Supervisor

ROOT = Path(__file__).resolve().parents[2]


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
        "broken/no_checkpoint",
        "broken/half_applied",
        "broken/done_before_the_end",
        "broken/lagging_record",
        "broken/stale_lock",
        "broken/no_outputs",
    ],
)
def test_snapshots_find_what_real_kills_find(tmp_path: Path, name: str) -> None:
    """The same findings at the same points, each of them confirmed by a real kill."""
    real = campaign(tmp_path / "real", name)
    copied = campaign(tmp_path / "copied", name, snapshots=True)
    assert [(f.kind, f.schedule, f.fingerprint) for f in copied.findings] == [
        (f.kind, f.schedule, f.fingerprint) for f in real.findings
    ]
    assert copied.trials == real.trials == real.real_kills
    assert copied.points == real.points
    assert copied.real_kills >= len({f.schedule for f in copied.findings if f.schedule != "none"})


def test_a_sound_task_is_valid_from_snapshots_also_with_two_kills(tmp_path: Path) -> None:
    """No copy shows anything on the forty calls, and few processes are killed for it."""
    summary = campaign(
        tmp_path, "sound/forty_calls", snapshots=True, max_points=48, depth=2, jobs=2
    )
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


def test_a_history_from_a_snapshot_is_the_history_of_the_kill(tmp_path: Path) -> None:
    """Event for event, for every point of a task, told by its own resume or by a twin's."""
    loaded = load(Target(scenario=str(ROOT / "scenarios" / "broken" / "record_before_effect.py")))

    async def go() -> None:
        async with Supervisor(loaded, 0, tmp_path) as supervisor:
            first, second = [await supervisor.run(Schedule()) for _ in range(2)]
            expectation = expect(first, second, loaded.scenario)
            schedules = first_wave(sweep(first, second, ("windows", "crossings"))[0])
            assert fits_snapshots(supervisor, schedules, expectation)
            results = await snapshot_trials(supervisor, schedules, expectation, lambda *_: None)
            assert sum(not result.real for result in results) > len(results) / 2
            for schedule, result in zip(schedules, results, strict=True):
                told = History.decode(result.history)
                assert plain(told) == plain(await supervisor.run(schedule)), str(schedule)
                numbers = [body.request for _, body in told.requests]
                assert len(set(numbers)) == len(numbers)

    asyncio.run(go())


def test_a_copy_that_says_something_else_than_the_kill_is_a_doubt() -> None:
    """The real kill's findings count, and the difference makes a VALID one UNKNOWN."""
    finding = Finding(
        kind="lost_effect", operation="a.b", subject="s", expected="e", seen="s", because="b"
    )
    bad, good = Judgement("INVALID", (finding,)), Judgement("VALID")

    def after(copy: Judgement, real: Judgement) -> Judgement:
        judged = _confirmed(copy, Result(history=b"", judgement=real)).judgement
        assert judged is not None
        return judged

    assert after(bad, bad) == bad
    assert after(good, good) == good
    assert after(bad, good).verdict == "UNKNOWN"
    assert "a real kill nothing" in after(bad, good).unknowns[0]
    assert after(good, bad).verdict == "INVALID"
    assert after(good, bad).findings == (finding,)


@pytest.mark.parametrize(
    ("texts", "ordered", "fits"),
    [
        (["kill@a#1", "kill@a#2"], True, True),
        (["kill@a#1", "kill@a#2"], False, False),
        (["kill@a#1"], True, False),
        (["kill@a#1", "kill@9ms"], True, False),
        (["kill@a#1", "none"], True, False),
        (["kill@a#1 + kill@a#2", "kill@a#3"], True, False),
        (["kill@a#1 / kill@a#1", "kill@a#1 / kill@a#2"], True, True),
    ],
)
def test_snapshots_are_taken_only_where_they_are_exact(
    texts: list[str], ordered: bool, fits: bool
) -> None:
    """Not where requests overlap, nor for times, nor for a single trial."""
    schedules = [parse_schedule(text) for text in texts]
    supervisor = Supervisor(load(Target(command=CommandSpec(command=("true",)))), 0)
    assert fits_snapshots(supervisor, schedules, Expectation(ordered=ordered)) is fits
