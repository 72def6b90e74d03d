"""The gallery: every broken scenario shows its named finding, every sound one is VALID."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from chaoskit.campaign.events import Finished
from chaoskit.campaign.mechanisms import best
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.campaign.workers import Inline
from chaoskit.checkers import check
from chaoskit.cli import gallery, matrix
from chaoskit.model.findings import FINDING_KINDS
from chaoskit.model.token import Target
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.trial.loading import load

ROOT = Path(__file__).resolve().parents[1]
BROKEN = sorted((ROOT / "scenarios" / "broken").glob("[!_]*.py"))
SOUND = sorted((ROOT / "scenarios" / "sound").glob("[!_]*.py"))
LARGE = {"backfill": 3, "forty_calls": 25, "file_migration": 25}
MOST = 40

ORDINARY = {
    *("record_after_effect", "lagging_record", "cursor_at_fetch", "zombie", "torn_checkpoint"),
    *("half_applied", "bound_by_arrival", "whole_file_hash", "stale_approval", "stale_lock"),
    *("coarse_key", "cancel_forgotten", "late_notice", "done_before_the_end", "left_behind"),
    *("no_checkpoint", "options_forgotten", "forty_calls", "one_owner", "looks_again", "fenced"),
    *("rolled_back", "goes_on_in_the_file"),
    *("last_one_again", "asked_twice", "exit_file_unread", "marker_unread", "marker_read"),
    *("code_by_step", "cancel_lasts", "log_with_an_end", "ordered_notices", "poison_stops"),
}
"""One of each class and of each finding, and twins. The others are run by ``make gallery``, and by
``make exhaustive``."""


TRACED = {
    "last_one_again",
    "marker_unread",
    "marker_read",
    "exit_file_unread",
    "rolled_back",
    "goes_on_in_the_file",
}
"""What is known of them follows from their system calls."""


def each(files: list[Path]) -> list[object]:
    """The files as parameters, those that are not ordinary for ``make exhaustive`` only."""
    rare = pytest.mark.exhaustive
    return [pytest.param(f, id=f.stem, marks=[] if f.stem in ORDINARY else rare) for f in files]


CLASSES = {
    *("DUP", "REDO", "LOST", "TWO", "TORN", "HALF"),
    *("INPUT", "CODE", "WORLD", "STUCK", "KEY", "CTRL"),
}
"""Of the list of real failures that the scenarios' cases are numbers of."""

README = (ROOT / "scenarios" / "README.md").read_text()
ROWS = {
    name: (cases.split(", "), schedules.split("<br>"))
    for name, cases, schedules in re.findall(
        r"^\| `broken/(\w+)\.py` \| .+? \| .+? \| (.+?) \| (.+?) \|$", README, re.MULTILINE
    )
}
"""The table of broken scenarios: cases and smallest schedules, by name."""


def explore(tmp_path: Path, file: Path, most: int) -> Summary:
    """A sampled campaign over one scenario, in this process."""
    options = Options(
        target=Target(scenario=str(file)), runs=str(tmp_path / "runs"), max_points=most
    )
    if file.stem in TRACED:
        options = msgspec.structs.replace(options, mechanisms=best())
    last = [event for event in run(options, Inline()) if isinstance(event, Finished)][-1]
    with Store(last.folder) as store:
        return summarize(store)


@pytest.mark.parametrize("file", each(BROKEN))
def test_a_broken_scenario_is_caught_by_its_named_finding_and_nothing_else(
    tmp_path: Path, file: Path
) -> None:
    """The set of findings equals what the scenario declares, and the documented schedule shows one
    of them.
    """
    scenario = load(Target(scenario=str(file))).scenario
    assert scenario.finds, f"{file.name} is broken and names no finding"
    summary = explore(tmp_path, file, MOST)
    row = matrix.row_of(str(file), scenario, summary)
    assert row.right, row.words
    assert {f"`{schedule}`" for schedule in row.found.values()} == set(ROWS[file.stem][1])


@pytest.mark.parametrize("file", each(SOUND))
def test_a_sound_scenario_is_valid(tmp_path: Path, file: Path) -> None:
    """No false alarm, in the real tasks nor in the twins; every fault has landed."""
    summary = explore(tmp_path, file, LARGE.get(file.stem, MOST))
    assert summary.verdict == "VALID", summary
    assert summary.points.landed == summary.points.tested


def test_the_table_says_which_cases_each_broken_scenario_stands_for() -> None:
    """scenarios/README.md and the scenarios name the same cases."""
    told = {f.stem: list(load(Target(scenario=str(f))).scenario.cases) for f in BROKEN}
    assert {name: cases for name, (cases, _) in ROWS.items()} == told


def test_the_tables_name_each_scenario_once() -> None:
    """None is missing, none is there twice, and none has gone."""
    named = re.findall(r"^\| `((?:broken|sound)/\w+)\.py` \|", README, re.MULTILINE)
    assert sorted(named) == [f"{file.parent.name}/{file.stem}" for file in (*BROKEN, *SOUND)]


def test_the_gallery_covers_every_class_of_real_failures() -> None:
    """At least forty broken scenarios, and one for each of the twelve classes."""
    assert len(BROKEN) >= 40
    assert {case.partition("-")[0] for cases, _ in ROWS.values() for case in cases} == CLASSES


def test_each_kind_of_finding_has_a_broken_scenario_that_only_it_catches() -> None:
    """No checker is there for nothing."""
    alone = {tuple(load(Target(scenario=str(f))).scenario.finds) for f in BROKEN}
    assert {kinds[0] for kinds in alone if len(kinds) == 1} == set(FINDING_KINDS)


def test_a_broken_checker_fails_the_gallery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one of the checkers, a broken scenario is missed, and its row says so."""
    lame = tuple(c for c in check.CHECKERS if c.__name__ != "duplicate_effect")
    monkeypatch.setattr(check.judge, "__defaults__", (lame,))
    file = ROOT / "scenarios" / "broken" / "record_after_effect.py"
    scenario = load(Target(scenario=str(file))).scenario
    row = matrix.row_of(str(file), scenario, explore(tmp_path, file, 12))
    assert row.verdict == "VALID"
    assert not row.right
    monkeypatch.setattr(gallery, "rows_of", lambda every, workers: iter([row]))
    code = gallery.gallery.main(
        ["--root", str(ROOT), "--runs", str(tmp_path)], standalone_mode=False
    )
    assert code == 1


def test_a_false_alarm_fails_the_gallery(tmp_path: Path) -> None:
    """A finding that a scenario does not name makes its row wrong, and so does one that is
    missing.
    """
    file = ROOT / "scenarios" / "broken" / "record_after_effect.py"
    scenario = load(Target(scenario=str(file))).scenario
    row = matrix.row_of(str(file), scenario, explore(tmp_path, file, 12))
    assert row.right
    assert not msgspec.structs.replace(row, expected=()).right
    assert not msgspec.structs.replace(row, expected=("duplicate_effect", "stuck")).right
    assert not msgspec.structs.replace(row, why="a checker failed").right


def test_a_scenario_that_cannot_be_run_is_a_wrong_row(tmp_path: Path) -> None:
    """A campaign that is refused is told with its reason, and does not end the gallery."""
    file = tmp_path / "refused.py"
    file.write_text(
        "from chaoskit import Scenario\n"
        "scenario = Scenario(task=print, services=('paiments',), finds=('stuck',))\n"
    )
    options = Options(target=Target(scenario=str(file)), runs=str(tmp_path / "runs"))
    row = msgspec.msgpack.decode(gallery.perform(msgspec.msgpack.encode(options)), type=matrix.Row)
    assert not row.right
    assert "paiments" in row.words
    assert "payments" in row.words


def test_what_cannot_run_here_is_left_out_and_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without PostgreSQL its scenarios are no failure, are not counted, and are named with what to
    install.
    """
    monkeypatch.setenv("CHAOSKIT_PG_BIN", str(tmp_path))
    file = ROOT / "scenarios" / "postgres" / "forty_calls.py"
    options = Options(target=Target(scenario=str(file)), runs=str(tmp_path / "runs"))
    row = msgspec.msgpack.decode(gallery.perform(msgspec.msgpack.encode(options)), type=matrix.Row)
    assert "there is no initdb and postgres" in row.lacks
    good = matrix.Row(path="scenarios/good.py", verdict="VALID")
    monkeypatch.setattr(gallery, "rows_of", lambda every, workers: iter([row, good]))
    code = gallery.gallery.main(
        ["--root", str(ROOT), "--runs", str(tmp_path)], standalone_mode=False
    )
    said = " ".join(capsys.readouterr().out.split())
    assert code == 0
    assert f"LEFT OUT {file}" in said
    assert "1 of 1 scenarios are as they should be" in said
    assert "1 left out" in said


def test_whole_campaigns_run_in_several_workers_at_once(tmp_path: Path) -> None:
    """Each campaign gives the row that it gives alone, whichever worker has it."""
    files = [ROOT / "scenarios" / folder for folder in ("broken/poison.py", "sound/undo.py")]
    every = [
        Options(target=Target(scenario=str(f)), runs=str(tmp_path / "runs"), max_points=6)
        for f in files
    ]
    rows = {Path(row.path).stem: row for row in gallery.rows_of(every, 2)}
    assert rows["poison"].found.keys() == {"stuck"}
    assert rows["undo"].verdict == "VALID"
