"""Which resumes are followed past their horizon, and what is done when one goes another way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.campaign.bounding import OTHERWISE, ends_of_kinds, kind_of
from chaoskit.campaign.events import BoundingGivenUp, Finished, TrialDone, WaveStarted
from chaoskit.campaign.joining import join
from chaoskit.campaign.options import Options, Shard
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.campaign.trials import plan_of
from chaoskit.campaign.workers import Inline
from chaoskit.model.errors import UsageError
from chaoskit.model.events import ResumeBounded
from chaoskit.model.points import WINDOWS
from chaoskit.model.schedule import parse_schedule
from chaoskit.model.token import Target
from chaoskit.reporting.summary import summarize

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
REMEMBERS = SCENARIOS / "broken" / "undo_forgotten.py"


@pytest.fixture
def options(tmp_path: Path) -> Options:
    """Bounded resumes of a task that goes on by what it has in memory."""
    return Options(
        target=Target(scenario=str(REMEMBERS)),
        mechanisms=("windows",),
        in_flight=(),
        resumes="bounded",
        runs=str(tmp_path / "runs"),
    )


def said(folder: Path) -> dict[str, tuple[str, frozenset[str]]]:
    """Verdict and findings of each trial of a campaign, none of which is bounded."""
    with Store(folder) as store:
        trials = list(store.trials())
        for trial in trials:
            notes = store.history(trial.schedule).of(ResumeBounded)
            assert all(body.followed for _, body in notes), trial.schedule
        return {
            trial.schedule: (
                trial.judgement.verdict,
                frozenset(finding.fingerprint for finding in trial.judgement.findings),
            )
            for trial in trials
        }


def finished(events: Sequence[object]) -> Path:
    """Where a campaign is that has ended."""
    (last,) = [event for event in events if isinstance(event, Finished)]
    assert last.why == ""
    return last.folder


@given(st.integers(1, 40), st.integers(1, 3))
def test_the_first_and_the_last_of_each_kind_are_followed(steps: int, kinds: int) -> None:
    """Whatever the plan: two schedules of each kind, or one where there is only one."""
    windows = WINDOWS[:kinds]
    texts = [f"kill@payments.charge#{n}.{w}" for n in range(1, steps + 1) for w in windows]
    found = list(ends_of_kinds(plan_of([parse_schedule(text) for text in texts])))
    ends = {str(s) for s in found}
    assert ends == {f"kill@payments.charge#{n}.{w}" for n in (1, steps) for w in windows}
    assert len({kind_of(schedule) for schedule in found}) == kinds


def test_a_campaign_that_is_stopped_when_bounding_was_given_up_goes_on_with_full_resumes(
    options: Options,
) -> None:
    """Stopped before the first resume is run again, and at any moment after it: what is there in
    the end is what full resumes show, and no full resume is run twice.
    """
    full = finished(list(run(_with(options, resumes="full"), Inline())))
    events = run(options, Inline())
    for event in events:
        if isinstance(event, BoundingGivenUp):
            break
    events.close()  # type: ignore[attr-defined]
    again = run(options, Inline())
    ran = []
    for event in again:
        if isinstance(event, TrialDone):
            ran.append(event.trial.schedule)
            break
    again.close()  # type: ignore[attr-defined]
    rest = list(run(options, Inline()))
    assert not any(isinstance(event, BoundingGivenUp) for event in rest)
    assert said(finished(rest)) == said(full)
    assert not {e.trial.schedule for e in rest if isinstance(e, TrialDone)} & set(ran)


def test_what_follows_is_not_known_to_a_campaign_that_begins_again(options: Options) -> None:
    """With two kills in a trial: the same trials as with full resumes, and they show the same;
    nothing is left of those before.
    """
    options = _with(options, depth=2, max_points=20)
    full = finished(list(run(_with(options, resumes="full"), Inline())))
    bounded = list(run(options, Inline()))
    place = next(i for i, event in enumerate(bounded) if isinstance(event, BoundingGivenUp))
    wave = next(event for event in bounded[place:] if isinstance(event, WaveStarted))
    assert wave.known == 0
    folder = finished(bounded)
    assert said(folder) == said(full)
    kept, other = ({f.name for f in (at / "trials").iterdir()} for at in (folder, full))
    assert kept == other


def test_shards_of_which_one_saw_it_are_not_joined(options: Options, tmp_path: Path) -> None:
    """The other one's resumes are bounded: the error names what to do. Had both seen it they would
    be joined, and the whole says so.
    """
    folders = []
    for number in (1, 2):
        shard = _with(options, shard=Shard(number, 2), runs=str(tmp_path / f"shard-{number}"))
        folders.append(finished(list(run(shard, Inline()))))
    knows = [folder for folder in folders if _value(folder, OTHERWISE)]
    assert len(knows) == 1, "the point at which it shows belongs to one of them"
    with pytest.raises(UsageError, match="--resumes full"):
        join(folders, tmp_path / "whole")
    assert not (tmp_path / "whole").exists()
    for folder in {*folders} - {*knows}:
        with Store(folder, writable=True) as store:
            store.put(OTHERWISE, _value(knows[0], OTHERWISE))
            store.put("resumes", "full")
    join(folders, tmp_path / "whole")
    with Store(tmp_path / "whole") as whole:
        assert any("every resume ran to its end" in r for r in summarize(whole).remarks)


def _value(folder: Path, key: str) -> str:
    with Store(folder) as store:
        return store.get(key) or ""


def _with(options: Options, **changes: object) -> Options:
    return msgspec.structs.replace(options, **changes)
