"""Soaks on real tasks: what they prove, what they find, and that they go on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from chaoskit.campaign.bench import Bench
from chaoskit.campaign.events import (
    CampaignEvent,
    Finished,
    RepeatsStarted,
    SoakStarted,
    Started,
    TrialDone,
)
from chaoskit.campaign.folder import find_run, open_campaign
from chaoskit.campaign.mechanisms import traced
from chaoskit.campaign.options import Options
from chaoskit.campaign.repeating import REPEATS, Repeated
from chaoskit.campaign.run import run
from chaoskit.campaign.soaking import REPEATED_MOST, RUN_S, failed_trials, soak_of, verdicts
from chaoskit.campaign.store import Soaked, Store, StoredTrial
from chaoskit.explore.plan import several_processes, sweep
from chaoskit.explore.soak import schedules
from chaoskit.explore.statistics import interval, upper_bound
from chaoskit.model.actions import Late
from chaoskit.model.findings import Finding, Judgement
from chaoskit.model.points import parse_point
from chaoskit.model.schedule import parse_schedule
from chaoskit.model.token import CommandSpec, Target
from chaoskit.reporting.summary import Summary, summarize
from tests.campaign.small_task import Care, small_task

LONG_S = 3600.0
"""Longer than any test takes: the number of trials ends these soaks, not the time."""


def options(tmp_path: Path, care: Care, **chosen: object) -> Options:
    """A soak of so many trials on a small task."""
    given = {"soak_s": LONG_S, "depth": 3, "runs": str(tmp_path / "runs"), **chosen}
    return Options(target=small_task(tmp_path, care), **given)  # type: ignore[arg-type]


def soak(given: Options) -> Summary:
    """Run it to its end; its summary."""
    last = [event for event in run(given) if isinstance(event, Finished)][-1]
    with Store(last.folder) as store:
        return summarize(store)


# What is proved.


def test_a_sound_task_is_valid_and_the_bound_says_how_far(tmp_path: Path) -> None:
    """After no failure the rate is bounded from above, by the exact bound for so many trials."""
    summary = soak(options(tmp_path, "keyed", max_points=30))
    assert (summary.verdict, summary.unknowns) == ("VALID", ())
    found = summary.soak
    assert found is not None
    assert (found.failures, found.unjudged, found.seed) == (0, 0, 0)
    assert found.trials + found.missed == 30
    assert found.trials == summary.trials == summary.real_kills == summary.verdicts["VALID"]
    assert (found.rate_min, found.rate_max) == (0.0, upper_bound(0, found.trials))
    assert re.fullmatch(
        rf"0 of {found.trials} trials failed: with 95 % confidence, at most [\d.]+ % of "
        "schedules drawn like these fail",
        found.sentence,
    )


def test_a_later_fault_that_finds_nothing_left_is_no_unknown(tmp_path: Path) -> None:
    """Such a trial is judged as the shorter schedule that landed, and stored as that."""
    given = options(tmp_path, "keyed", max_points=30)
    summary = soak(given)
    assert summary.soak is not None
    assert summary.soak.shorter > 0
    with Store(find_run(Path(given.runs), "latest")) as store:
        rows = list(store.soaked())
        trials = {trial.schedule: trial for trial in store.trials()}
        for row in rows:
            landed = parse_schedule(row.schedule)
            assert landed.faults <= parse_schedule(row.drawn).faults
            assert len(store.history(row.schedule).landed) == landed.faults
            assert trials[row.schedule].judgement.verdict == row.verdict == "VALID"
    assert sum(r.drawn != r.schedule for r in rows if r.schedule != "none") == summary.soak.shorter


def test_what_is_done_before_an_attempt_is_no_point(tmp_path: Path) -> None:
    """The points that were hit are counted without clocks, damage and misbehaviours."""
    given = options(tmp_path, "keyed", max_points=16, faults=("services",))
    summary = soak(given)
    assert summary.soak is not None
    with Store(find_run(Path(given.runs), "latest")) as store:
        landed = [parse_schedule(r.schedule) for r in store.soaked() if r.schedule != "none"]
    faults = [fault for schedule in landed for at in schedule.attempts for fault in at]
    assert any(fault.is_prelude for fault in faults)
    points = {str(f).split("@", 1)[1] for f in faults if not f.is_prelude}
    exact = {point for point in points if not re.fullmatch(r"\d+ms", point)}
    assert summary.points.landed == summary.soak.points == len(exact)


def test_the_schedules_are_those_of_the_seed(tmp_path: Path) -> None:
    """Number by number a soak runs what the pure stream gives for its survey and its seed."""
    given = options(tmp_path, "keyed", max_points=9, seed=7, jobs=2)
    soak(given)
    with Store(find_run(Path(given.runs), "latest")) as store:
        survey = store.survey()
        assert survey is not None
        known, _ = sweep(survey[:2], given.mechanisms)
        asked = soak_of(given, survey[0], known)
        stream = schedules(asked.points, float(store.get(RUN_S) or 0), 7, 3, asked.faults)
        assert [row.drawn for row in store.soaked()] == [str(s) for s in islice(stream, 9)]
        assert any(isinstance(fault.action, Late) for fault in asked.faults)


# What is found.


def test_a_broken_task_is_found_and_the_finding_is_steady(tmp_path: Path) -> None:
    """INVALID, with the interval of the rate; five repeats of a failed exact schedule all fail."""
    summary = soak(options(tmp_path, "none", max_points=20, depth=1))
    found = summary.soak
    assert (summary.verdict, summary.kinds) == ("INVALID", {"duplicate_effect"})
    assert found is not None
    assert 0 < found.failures == summary.verdicts["INVALID"]
    assert (found.rate_min, found.rate_max) == interval(found.failures, found.trials)
    exact = [f for f in summary.findings if not parse_schedule(f.schedule).timed]
    assert {f.repeated for f in exact} == {str(Repeated(first=True, shown=REPEATS, times=REPEATS))}
    assert "STEADY 5/5" in exact[0].repeated


def test_a_task_that_fails_now_and_then_is_flaky(tmp_path: Path) -> None:
    """One that is careless in every other resume shows it in two or three of five repeats."""
    summary = soak(options(tmp_path, "every other time", max_points=20, depth=1))
    assert summary.verdict == "INVALID"
    exact = [f for f in summary.findings if not parse_schedule(f.schedule).timed]
    assert exact
    assert all(re.match(r"FLAKY [23]/5 \(", f.repeated) for f in exact)


# Interruptions.


def test_an_interrupted_soak_keeps_what_it_has_and_goes_on(tmp_path: Path) -> None:
    """Trials that were finished are not run again, and in the end no number is missing."""
    given = options(tmp_path, "keyed", max_points=16, jobs=2)
    stream = run(given)
    assert isinstance(stream, Iterator)
    with closing(stream):  # type: ignore[type-var]
        first = list(islice((e for e in stream if isinstance(e, TrialDone)), 4))
    with Store(find_run(Path(given.runs), "latest")) as store:
        before = [row.position for row in store.soaked()]
        interrupted = summarize(store)
    assert {event.trial.position for event in first} == set(before)
    assert interrupted.verdict == "VALID"
    assert interrupted.soak is not None
    assert any("interrupted" in line for line in interrupted.not_tested)
    events = list(run(given))
    assert isinstance(events[0], Started)
    assert events[0].resumed
    (began,) = (event for event in events if isinstance(event, SoakStarted))
    assert (began.trials, began.spent_s > 0) == (4, True)
    fresh = [event.trial.position for event in events if isinstance(event, TrialDone)]
    assert sorted(before + fresh) == list(range(16))
    with Store(find_run(Path(given.runs), "latest")) as store:
        assert [row.position for row in store.soaked()] == list(range(16))


def test_a_soak_whose_time_is_over_begins_no_trial(tmp_path: Path) -> None:
    """Interruptions do not make a soak longer: time that was spent is not spent again."""
    given = options(tmp_path, "keyed", max_points=3)
    stream = run(given)
    with closing(stream):  # type: ignore[type-var]
        next(e for e in stream if isinstance(e, TrialDone))
    with Store(find_run(Path(given.runs), "latest"), writable=True) as store:
        store.put("soak.seconds", str(LONG_S))
    assert not [event for event in run(given) if isinstance(event, TrialDone)]


def test_repeats_are_not_run_twice(tmp_path: Path) -> None:
    """A soak that is stopped among its repeats goes on with those that are missing."""
    given = options(tmp_path, "none", max_points=12, depth=1)
    stream = run(given)
    with closing(stream):  # type: ignore[type-var]
        wanted = next(e for e in stream if isinstance(e, RepeatsStarted)).schedules
    with Store(find_run(Path(given.runs), "latest"), writable=True) as store:
        failed = failed_trials(store, REPEATED_MOST)
        assert len(failed) == wanted
        store.put_repeats(failed[0].schedule, Repeated(first=True, shown=1, times=2))
    events: list[CampaignEvent] = list(run(given))
    (again,) = (event for event in events if isinstance(event, RepeatsStarted))
    assert again.schedules == wanted - 1
    with Store(find_run(Path(given.runs), "latest")) as store:
        assert store.repeats()[failed[0].schedule].times == 2
        assert store.repeats().keys() == {trial.schedule for trial in failed}


# The parts.


@pytest.mark.parametrize(
    ("texts", "several"),
    [
        (["write(a)#1", "payments.charge#1.applied", "x#1"], False),
        (["write(a)#1", "p1:write(a)#1"], True),
        (["p1.p1:write(a)#1"], True),
        ([], False),
    ],
)
def test_the_first_process_alone_is_killed_where_there_are_others(
    texts: list[str], several: bool
) -> None:
    """Points that are no calls tell nothing."""
    assert several_processes([parse_point(text) for text in texts]) is several


CHILD = "for n in 1 2; do [ -e out$n ] || sh -c 'echo x > part; echo y > 2; mv part out'$n; done"


def test_what_outlives_the_first_process_goes_on_while_every_call_is_followed(
    tmp_path: Path,
) -> None:
    """A fault of another attempt that follows all calls holds no orphan of this one back."""
    if not traced().works:
        pytest.skip("system calls cannot be traced here")
    target = Target(command=CommandSpec(command=("sh", "-c", CHILD), outputs=("out*",)))
    schedule = parse_schedule("kill-leader@p1:write(part)#1 / power:drop@write(part)#9+after")
    with Bench(target, 0, str(tmp_path)) as bench:
        tried = bench.trial(schedule)
    assert [body.fault for _, body in tried.history.landed] == ["kill-leader@p1:write(part)#1"]
    assert not tried.judgement.findings


def finding(operation: str) -> Finding:
    """One of an operation."""
    return Finding(
        kind="lost_effect", operation=operation, subject="s", expected="e", seen="s", because="b"
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A new campaign."""
    with open_campaign(tmp_path, "x", "identity", fresh=True)[0] as made:
        yield made


def stored(schedule: str, position: int, judgement: Judgement) -> StoredTrial:
    """One trial of a soak."""
    return StoredTrial(schedule, 1, position, judgement, landed=True, real=True)


def test_each_finding_has_its_turn_among_the_repeats(store: Store) -> None:
    """However often one thing fails, another that fails once is among those that are repeated."""
    for number, operation in enumerate(["a.b"] * 6 + ["c.d", "e.f"]):
        judgement = Judgement("INVALID", (finding(operation),))
        store.put_trial(stored(f"kill@x#{number + 1}", number, judgement), b"")
    chosen = failed_trials(store, 3)
    assert [t.judgement.findings[0].operation for t in chosen] == ["a.b", "c.d", "e.f"]
    assert len(failed_trials(store, 99)) == 8


def test_trials_that_are_judged_again_count_as_they_are_judged_now(store: Store) -> None:
    """A schedule that is cleared is cleared in all its trials; a new finding counts where it is."""
    bad, good = Judgement("INVALID", (finding("a.b"),)), Judgement("VALID")
    rows = [("kill@x#1", "INVALID"), ("kill@x#1", "VALID"), ("kill@x#1", "INVALID")]
    rows += [("kill@x#2", "VALID"), ("kill@x#2", "VALID")]
    for number, (schedule, verdict) in enumerate(rows):
        trial = stored(schedule, number, bad if verdict == "INVALID" else good)
        history = b"" if number in {0, 3} else None
        store.put_soaked(Soaked(number, schedule, schedule, verdict), trial, history, 1.0)
    assert [verdict for _, verdict in verdicts(store)] == [verdict for _, verdict in rows]
    store.put_judgement("kill@x#1", good)
    store.put_judgement("kill@x#2", bad)
    now = [verdict for _, verdict in verdicts(store)]
    assert now == ["VALID", "VALID", "VALID", "INVALID", "VALID"]


def test_a_task_that_proves_nothing_is_not_soaked(tmp_path: Path) -> None:
    """Without an effect there is nothing to judge by: UNKNOWN, and no bound is claimed."""
    target = small_task(tmp_path, "keyed", inputs=[])
    summary = soak(Options(target=target, soak_s=LONG_S, runs=str(tmp_path / "runs")))
    assert summary.verdict == "UNKNOWN"
    assert summary.soak is not None
    assert summary.soak.rate_max == 1.0
    assert "says nothing" in summary.soak.sentence
