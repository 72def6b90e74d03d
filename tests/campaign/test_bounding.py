"""Which resumes are followed past their horizon, and what is done when one goes another way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.campaign.bounding import OTHERWISE, ends_of_kinds, kind_of
from chaoskit.campaign.events import (
    BoundingGivenUp,
    Finished,
    Started,
    Surveyed,
    TrialDone,
    WaveStarted,
)
from chaoskit.campaign.joining import join
from chaoskit.campaign.options import Options, Shard
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.campaign.trials import plan_of
from chaoskit.campaign.workers import Inline
from chaoskit.model.errors import UsageError
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
            assert not store.history(trial.schedule).bounded, trial.schedule
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


def test_numbers_of_any_sort_make_no_other_kind() -> None:
    """Ordinals, numbered files and byte counts: a file for each item is still one kind of point."""
    texts = [f"kill@write(out/item-{n}.json)#1+short:{n * 4096}" for n in (1, 2, 17)]
    assert len({kind_of(parse_schedule(text)) for text in texts}) == 1
    other = parse_schedule("kill@write(out/other.json)#1+short:4096")
    assert kind_of(other) != kind_of(parse_schedule(texts[0]))


TASK = """
import sys
import uuid

sys.path.insert(0, {folder!r})
import _shop as shop

from chaoskit import Scenario, probe


def main():
    services, books, checkpoint = shop.Shop(), shop.database(), shop.Checkpoint()
    for number in range(checkpoint.values.get("done", 0), 6):
        buyer = {{"cents": 100 + number, "email": "a@b.c", "name": "A"}}
        probe.step(f"step-{{number}}", "started")
        services.charge(buyer, key=f"k{{number}}")
        with books:
            books.execute({row!r}, (number,))
        checkpoint.save(done=number + 1)
        probe.step(f"step-{{number}}", "recorded")
    if "key" not in checkpoint.values:
        checkpoint.save(key={key})
    services.send("owner@example.com", "All charged", "closed", key=checkpoint.values["key"])


scenario = Scenario(
    task=main,
    services=("payments", "email", "database"),
    tables="CREATE TABLE sales (number INTEGER PRIMARY KEY, at TEXT);",
)
"""
PLAIN = "INSERT OR IGNORE INTO sales (number) VALUES (?)"
TIMED = "INSERT OR IGNORE INTO sales VALUES (?, strftime('%Y-%m-%d %H:%M:%f', 'now'))"


@pytest.mark.parametrize(
    ("row", "key"),
    [(TIMED, "'closing'"), (PLAIN, "str(uuid.uuid4())")],
    ids=["rows say when", "a key is made once"],
)
def test_what_varies_from_run_to_run_is_no_other_way(
    options: Options, tmp_path: Path, row: str, key: str
) -> None:
    """A sound task whose rows hold a time of day, or which makes a key and keeps it: bounded
    resumes find nothing wrong with it, and are not given up.
    """
    file = tmp_path / "varies.py"
    text = TASK.format(folder=str(SCENARIOS), row=row, key=key)
    file.write_text(text, encoding="utf-8")
    options = _with(options, target=Target(scenario=str(file)), depth=2, max_points=20)
    events = list(run(options, Inline()))
    assert not any(isinstance(event, BoundingGivenUp) for event in events)
    with Store(finished(events)) as store:
        trials = list(store.trials())
        assert {trial.judgement.verdict for trial in trials} == {"VALID"}
        assert any(store.history(trial.schedule).bounded for trial in trials)


def test_an_end_of_its_kind_is_followed_though_a_twin_was_not(
    options: Options, tmp_path: Path
) -> None:
    """The last mail comes after a charge in the middle, after which a kill leaves the same world as
    before the mail: the resume is run for that as well, to its end.
    """
    file = tmp_path / "twin.py"
    text = TASK.format(folder=str(SCENARIOS), row=PLAIN, key="'closing'").replace(
        "        with books:",
        """        if number < 11:
            services.send("a@b.c", f"m{number}", "x", key=f"m{number}")
        with books:""",
    )
    closing, _, rest = text.replace(", 6)", ", 20)").partition('    if "key"')
    file.write_text(closing + rest[rest.index("\n\nscenario") :], encoding="utf-8")
    options = _with(options, target=Target(scenario=str(file)))
    with Store(finished(list(run(options, Inline())))) as store:
        shared = [trial for trial in store.trials() if trial.shared]
        assert any(store.history(trial.schedule).bounded for trial in shared)
        plan = plan_of([parse_schedule(t.schedule) for t in store.trials() if t.wave])
        for schedule in ends_of_kinds(plan):
            assert not store.history(str(schedule)).bounded, schedule


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
    assert isinstance(
        next(e for e in again if not isinstance(e, Started | Surveyed)), BoundingGivenUp
    )
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
    """With two kills in a trial: the same trials as with full resumes, and they show the same, with
    the same artefacts.
    """
    options = _with(options, depth=2, max_points=20)
    full = finished(list(run(_with(options, resumes="full"), Inline())))
    bounded = list(run(options, Inline()))
    place = next(i for i, event in enumerate(bounded) if isinstance(event, BoundingGivenUp))
    wave = next(event for event in bounded[place:] if isinstance(event, WaveStarted))
    with Store(full) as store:
        failed = [t for t in store.trials() if t.judgement.findings and t.wave == 1]
    assert 0 < wave.known <= len(failed), "only findings of full resumes are kept"
    folder = finished(bounded)
    assert said(folder) == said(full)
    kept, other = ({f.name for f in (at / "trials").iterdir()} for at in (folder, full))
    assert kept == other


def test_what_hides_something_is_not_believed_when_there_is_no_time_for_more(
    options: Options,
) -> None:
    """Stopped when it was seen, and the time is over: the findings are there, nothing is forgotten,
    and the result says why it is not to be believed.
    """
    options = _with(options, max_time_s=500.0)
    events = run(options, Inline())
    for event in events:
        if isinstance(event, Started):
            folder = event.folder
        if isinstance(event, TrialDone) and event.trial.judgement.findings:
            break
    events.close()  # type: ignore[attr-defined]
    with Store(folder, writable=True) as store:
        assert store.get(OTHERWISE)
        before = {trial.schedule: trial.judgement for trial in store.trials()}
        store.put("seconds", "1000")
    (last,) = [event for event in run(options, Inline()) if isinstance(event, Finished)]
    assert last.why == "the time limit of 500.0 s was reached"
    with Store(folder) as store:
        assert {trial.schedule: trial.judgement for trial in store.trials()} == before
        summary = summarize(store)
    assert summary.verdict == "INVALID"
    (doubt,) = [reason for reason in summary.unknowns if "--resumes full" in reason]
    assert "hide something" in doubt
    assert not any("ran to its end" in remark for remark in summary.remarks)


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
