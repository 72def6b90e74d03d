"""The gallery: every broken scenario shows its named finding, every sound one is VALID."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaoskit.campaign.run import Finished, Options, run
from chaoskit.campaign.store import Store
from chaoskit.campaign.workers import Inline
from chaoskit.checkers import check
from chaoskit.cli import gallery
from chaoskit.model.findings import FINDING_KINDS
from chaoskit.model.token import Target
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.trial.loading import load

ROOT = Path(__file__).resolve().parents[1]
BROKEN = sorted((ROOT / "scenarios" / "broken").glob("[!_]*.py"))
SOUND = sorted((ROOT / "scenarios" / "sound").glob("[!_]*.py"))


def explore(tmp_path: Path, file: Path, most: int) -> Summary:
    """A sampled campaign over one scenario, in this process."""
    options = Options(
        target=Target(scenario=str(file)), runs=str(tmp_path / "runs"), max_points=most
    )
    last = [event for event in run(options, Inline()) if isinstance(event, Finished)][-1]
    with Store(last.folder) as store:
        return summarize(store)


@pytest.mark.parametrize("file", BROKEN, ids=lambda f: f.stem)
def test_a_broken_scenario_is_caught_by_its_named_finding_and_nothing_else(
    tmp_path: Path, file: Path
) -> None:
    """The set of findings equals what the scenario declares."""
    expected = set(load(Target(scenario=str(file))).scenario.expect)
    assert expected, f"{file.name} is broken and names no finding"
    summary = explore(tmp_path, file, 40)
    assert summary.kinds == expected


@pytest.mark.parametrize(("file", "most"), [(f, 6 if f.stem == "backfill" else 25) for f in SOUND])
def test_a_sound_scenario_is_valid(tmp_path: Path, file: Path, most: int) -> None:
    """No false alarm on the three real tasks, with a second kill in the resume."""
    summary = explore(tmp_path, file, most)
    assert summary.verdict == "VALID", summary
    assert summary.points.landed == summary.points.tested == most


def test_each_kind_of_finding_has_a_broken_scenario_that_only_it_catches() -> None:
    """No checker is there for nothing."""
    alone = {tuple(load(Target(scenario=str(f))).scenario.expect) for f in BROKEN}
    with_company = {kind for kinds in alone for kind in kinds}
    assert with_company == set(FINDING_KINDS)
    assert {kinds[0] for kinds in alone if len(kinds) == 1} >= set(FINDING_KINDS) - {
        "silent_restart"  # what starts over also repeats its first effect
    }


def test_a_broken_checker_fails_the_gallery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one of the checkers, a broken scenario is missed, and its row says so."""
    lame = tuple(c for c in check.CHECKERS if c.__name__ != "duplicate_effect")
    monkeypatch.setattr(check.judge, "__defaults__", (lame,))
    file = ROOT / "scenarios" / "broken" / "record_after_effect.py"
    summary = explore(tmp_path, file, 12)
    row = gallery.Row(str(file), frozenset({"duplicate_effect"}), summary)
    assert summary.verdict == "VALID"
    assert not row.right
    monkeypatch.setattr(gallery, "_row", lambda options, out: row)
    code = gallery.gallery.main(
        ["--root", str(ROOT), "--runs", str(tmp_path)], standalone_mode=False
    )
    assert code == 1


def test_a_false_alarm_fails_the_gallery(tmp_path: Path) -> None:
    """A finding that a scenario does not name makes its row wrong."""
    file = ROOT / "scenarios" / "broken" / "record_after_effect.py"
    summary = explore(tmp_path, file, 12)
    assert gallery.Row(str(file), frozenset({"duplicate_effect"}), summary).right
    assert not gallery.Row(str(file), frozenset(), summary).right
    assert not gallery.Row(str(file), frozenset({"duplicate_effect", "stuck"}), summary).right
