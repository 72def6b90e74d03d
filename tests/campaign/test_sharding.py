"""Shards: together they are the campaign, and each says what it left to the others."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.campaign.events import CampaignEvent, Finished, TrialDone, WaveStarted
from chaoskit.campaign.joining import join
from chaoskit.campaign.options import Options, Shard
from chaoskit.campaign.replay import replay
from chaoskit.campaign.run import run
from chaoskit.campaign.sharding import EmptyShardError, most_of, plan_of_all, shard_from, share
from chaoskit.campaign.store import Store, StoredTrial
from chaoskit.campaign.workers import Inline
from chaoskit.model.errors import UsageError
from chaoskit.model.schedule import Schedule, parse_schedule
from chaoskit.model.token import Target, parse_token
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.trace.abi import this_abi
from tests.campaign.small_task import small_task

MECHANISMS = ("calls", "windows") if this_abi() is not None else ("windows",)


def shards_of(n: int) -> list[Shard]:
    """All shards of a campaign that is divided into ``n``."""
    return [Shard(number, n) for number in range(1, n + 1)]


def campaign(target: Target, runs: Path, **options: object) -> Path:
    """Run one campaign in this process; its folder."""
    given_ = {"mechanisms": MECHANISMS, "depth": 2} | options
    jobs = given_.get("jobs", 1)
    chosen = Options(target=target, runs=str(runs), **given_)  # type: ignore[arg-type]
    executor = Inline() if jobs == 1 else None
    return next(event.folder for event in run(chosen, executor) if isinstance(event, Finished))


def trials_in(folder: Path) -> list[StoredTrial]:
    """Its trials, the control left out."""
    with Store(folder) as store:
        return [trial for trial in store.trials() if trial.wave]


def summary_of(folder: Path) -> Summary:
    """What its report is made from."""
    with Store(folder) as store:
        return summarize(store)


def judged(folder: Path) -> list[tuple[str, int, int, str, list[str], str]]:
    """Of every trial, in order: what it was, where it stands, and what was said of it."""
    return [
        (
            trial.schedule,
            trial.wave,
            trial.position,
            trial.judgement.verdict,
            sorted(f.fingerprint for f in trial.judgement.findings),
            trial.judgement.end,
        )
        for trial in trials_in(folder)
    ]


# How trials are dealt out.


@given(
    st.lists(st.sampled_from(["", "a", "b", "c", "d"]), min_size=1, max_size=40),
    st.integers(1, 12),
)
def test_shares_are_disjoint_whole_and_do_not_part_equal_worlds(
    worlds: Sequence[str], n: int
) -> None:
    """Every trial is in exactly one share, trials with one world are in the same one, and a share
    is empty only where there are more shards than groups.
    """
    wave = [parse_schedule(f"kill@payments.charge#{i}.applied") for i in range(1, len(worlds) + 1)]
    known = {str(s): w for s, w in zip(wave, worlds, strict=True) if w}
    shares: list[list[int]] = []
    refused: list[tuple[bool, bool]] = []
    groups = len(set(filter(None, worlds))) + worlds.count("")
    for shard in shards_of(n):
        try:
            shares.append(share(wave, known, shard))
        except EmptyShardError as error:
            refused.append((shard.number > groups, f"at most {groups} shards" in str(error)))
    assert set(refused) <= {(True, True)}
    assert len(shares) == min(n, groups)
    assert sorted(place for own in shares for place in own) == list(range(len(wave)))
    for own in shares:
        here = {worlds[place] for place in own} - {""}
        assert sum(worlds.count(world) for world in here) == sum(worlds[p] != "" for p in own)


@given(st.integers(0, 500), st.integers(1, 20))
def test_bounds_add_up(most: int, n: int) -> None:
    """The parts of a bound are the bound, and differ by one at most."""
    parts = [most_of(most, shard) or 0 for shard in shards_of(n)]
    assert sum(parts) == most
    assert max(parts) - min(parts) <= 1


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_a_shard_reads_back(a: int, b: int) -> None:
    """The text of a shard is that shard again."""
    shard = Shard(min(a, b), max(a, b))
    assert shard_from(str(shard)) == shard


@pytest.mark.parametrize("text", ["", "1", "0/3", "4/3", "1/0", "-1/3", "1/3/3", "a/b", "1/99999"])
def test_what_is_no_shard_is_refused_with_an_example(text: str) -> None:
    """The message says what a shard looks like."""
    with pytest.raises(UsageError, match="as in 1/3"):
        shard_from(text)


@pytest.mark.parametrize(
    ("options", "says"),
    [({"soak_s": 5.0}, "soak"), ({"times": 3}, "--seed"), ({"mechanisms": ("times",)}, "--seed")],
)
def test_what_cannot_be_divided_is_refused(
    tmp_path: Path, options: dict[str, object], says: str
) -> None:
    """Trials that depend on the clock are other ones in each shard."""
    with pytest.raises(UsageError, match=says):
        campaign(small_task(tmp_path, "keyed"), tmp_path / "runs", shard=Shard(1, 2), **options)
    assert not (tmp_path / "runs").exists()


# They are the campaign.


@pytest.fixture(scope="module")
def divided(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    """A campaign of a careless task at depth 2, whole and in three shards."""
    folder = tmp_path_factory.mktemp("divided")
    target = small_task(folder, "none", inputs=["ada", "bob"])
    whole = campaign(target, folder / "whole")
    parts = [campaign(target, folder / "parts", shard=shard) for shard in shards_of(3)]
    return whole, parts


@pytest.mark.parametrize("wave", [1, 2])
def test_shards_make_up_the_campaign(divided: tuple[Path, list[Path]], wave: int) -> None:
    """In each wave no trial is in two shards, and together they are those of the whole one."""
    whole, parts = divided
    of_all = [t.schedule for t in trials_in(whole) if t.wave == wave]
    of_each = [[t.schedule for t in trials_in(part) if t.wave == wave] for part in parts]
    assert of_all
    assert all(of_each), "each has some"
    assert sorted(text for one in of_each for text in one) == sorted(of_all)


def test_a_shard_goes_on_from_its_own_beginnings(divided: tuple[Path, list[Path]]) -> None:
    """Each second kill of a shard follows a first one of the same shard."""
    for part in divided[1]:
        trials = trials_in(part)
        first = {t.schedule for t in trials if t.wave == 1}
        begun = {
            str(Schedule(parse_schedule(t.schedule).attempts[:-1])) for t in trials if t.wave == 2
        }
        assert begun
        assert begun <= first


def test_joined_shards_are_the_campaign(divided: tuple[Path, list[Path]], tmp_path: Path) -> None:
    """Joined in any order they have the trials of the whole campaign in its order, are judged as
    it is, report the same, and keep the artefacts of their failures.
    """
    whole, parts = divided
    into = tmp_path / "all" / "joined"
    join(parts[::-1], into)
    assert judged(into) == judged(whole)
    one, other = summary_of(whole), summary_of(into)
    assert one.verdict == "INVALID"
    same = ("verdict", "points", "trials", "kills", "depth", "verdicts", "ends", "unknowns")
    for name in (*same, "not_tested", "remarks", "seed"):
        assert getattr(other, name) == getattr(one, name), name
    assert [(f.schedule, f.fingerprint, f.function) for f in other.findings] == [
        (f.schedule, f.fingerprint, f.function) for f in one.findings
    ]
    assert any(f.function for f in other.findings)
    kept = {f.read_text().strip() for f in into.glob("trials/*/schedule.txt")}
    assert kept
    assert kept == {
        f.read_text().strip() for part in parts for f in part.glob("trials/*/schedule.txt")
    }
    with Store(into) as store:
        for trial in store.trials():
            folder = store.artefacts(trial.wave, trial.position)
            if folder.exists():
                assert (folder / "schedule.txt").read_text().strip() == trial.schedule


def test_a_finding_of_joined_shards_is_replayed(
    divided: tuple[Path, list[Path]], tmp_path: Path
) -> None:
    """The token is that of a campaign that was never divided."""
    join(divided[1], tmp_path / "joined")
    finding = summary_of(tmp_path / "joined").findings[0]
    assert replay(parse_token(finding.replay.split()[-1])).outcome == "REPRODUCED"


def test_a_shard_says_what_it_left_to_the_others(divided: tuple[Path, list[Path]]) -> None:
    """Under "not tested" stands how many trials others have; no point is called unreached."""
    whole, parts = divided
    planned = len([t for t in trials_in(whole) if t.wave == 1])
    for number, part in enumerate(parts, 1):
        summary = summary_of(part)
        own = len([t for t in trials_in(part) if t.wave == 1])
        (said,) = [text for text in summary.not_tested if "other shards" in text]
        assert said.startswith(f"{planned - own} trials of the first wave")
        assert f"this is {number}/3" in said
        assert not any("not reached" in text for text in summary.not_tested)
    assert not any("shard" in text for text in summary_of(whole).not_tested)


@pytest.mark.parametrize("snapshots", [True, False])
def test_shards_of_a_sample_are_the_same_for_any_number_of_workers(
    tmp_path: Path, snapshots: bool
) -> None:
    """-j 1 and -j 2 give a shard the same trials, from copies and by real kills; the sample that is
    divided is that of the whole campaign.
    """
    target = small_task(tmp_path, "keyed", inputs=["ada"])
    chosen = {"max_points": 6, "seed": 3, "snapshots": snapshots, "in_flight": ()}
    one = [campaign(target, tmp_path / "1", shard=shard, **chosen) for shard in shards_of(2)]
    two = campaign(target, tmp_path / "2", shard=Shard(2, 2), jobs=2, **chosen)
    assert judged(two) == judged(one[1])
    whole = campaign(target, tmp_path / "whole", depth=1, **chosen)
    firsts = [t.schedule for part in one for t in trials_in(part) if t.wave == 1]
    assert sorted(firsts) == sorted(t.schedule for t in trials_in(whole))
    seconds = [t.schedule for part in one for t in trials_in(part) if t.wave == 2]
    assert len(seconds) == len(set(seconds)) == 6


def test_an_interrupted_shard_goes_on_with_its_share(tmp_path: Path) -> None:
    """Stopped after some trials, the same words give it the same share, and it ends."""
    target = small_task(tmp_path, "keyed", inputs=["ada", "bob", "cyd"])
    chosen = Options(
        target=target,
        mechanisms=("windows",),
        shard=Shard(1, 2),
        runs=str(tmp_path / "runs"),
        in_flight=(),
    )
    with closing(cast("Generator[CampaignEvent]", run(chosen, Inline()))) as events:
        assert any(isinstance(event, TrialDone) for event in events)
    again = list(run(chosen, Inline()))
    (wave,) = [event for event in again if isinstance(event, WaveStarted)]
    assert wave.known == 1 < wave.total
    folder = next(event.folder for event in again if isinstance(event, Finished))
    assert len(trials_in(folder)) == wave.total
    fresh = campaign(
        target, tmp_path / "x", mechanisms=("windows",), depth=1, in_flight=(), shard=Shard(1, 2)
    )
    assert [t.schedule for t in trials_in(fresh)] == [t.schedule for t in trials_in(folder)]


# What cannot be joined.


def marred(folder: Path, to: Path, **values: str | None) -> Path:
    """A copy of a shard in which some values are other ones, or none."""
    shutil.copytree(folder, to)
    database = sqlite3.connect(to / "campaign.sqlite")
    with database:
        for key, value in values.items():
            name = key.replace("_", ".", 1)
            database.execute("DELETE FROM meta WHERE key = ?", (name,))
            if value is not None:
                database.execute("INSERT INTO meta VALUES (?, ?)", (name, value))
    database.close()
    return to


def refusal(folders: Sequence[Path], into: Path) -> str:
    """Why these are not joined; nothing is left behind then."""
    there = sorted(into.parent.iterdir())
    with pytest.raises(UsageError) as refused:
        join(folders, into)
    assert sorted(into.parent.iterdir()) == there
    return str(refused.value)


def test_shards_that_do_not_go_together_are_refused_with_the_reason(
    divided: tuple[Path, list[Path]], tmp_path: Path
) -> None:
    """A missing one, one twice, a whole campaign, an unfinished one, one of other words or files,
    one with another plan or another share, and a folder that is there.
    """
    whole, parts = divided
    into = tmp_path / "into"
    assert "give 2/3 as well" in refusal([parts[0], parts[2]], into)
    assert "the same one" in refusal([*parts, parts[0]], into)
    assert "no shard" in refusal([whole], into)
    assert "give the folders" in refusal([], into)
    unended = marred(parts[0], tmp_path / "unended", finished=None)
    assert "has not ended" in refusal([unended, *parts[1:]], into)
    other = marred(parts[0], tmp_path / "other", shard_campaign="another")
    assert "files of the task differ" in refusal([other, *parts[1:]], into)
    with Store(parts[0]) as store:
        options = msgspec.json.decode(store.get("options") or "", type=Options)
        plan = plan_of_all(store)
    seeded = msgspec.json.encode(msgspec.structs.replace(options, seed=9)).decode()
    other = marred(parts[0], tmp_path / "seed", shard_campaign="another", options=seeded)
    assert "seed differ" in refusal([other, *parts[1:]], into)
    odd = msgspec.json.encode(plan[:-1]).decode()
    other = marred(parts[0], tmp_path / "plan", shard_plan=odd)
    assert plan[-1] in refusal([other, *parts[1:]], into)
    everything = msgspec.json.encode(list(range(len(plan)))).decode()
    other = marred(parts[0], tmp_path / "share", shard_share=everything)
    assert "both have the trial" in refusal([other, *parts[1:]], into)
    assert "is there already" in refusal(parts, whole)
    refuted = marred(parts[0], tmp_path / "refuted", refuted="a copy of the world at none")
    assert "run all shards again with --no-snapshots" in refusal([refuted, *parts[1:]], into)
