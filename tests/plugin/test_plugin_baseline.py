"""The baseline: its file, what a session makes of it, and no worker loses what another told."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.campaign.mechanisms import traced
from chaoskit.model.errors import FormatError
from chaoskit.pytest_plugin.baseline import Entry, read, stale, updated, write
from chaoskit.pytest_plugin.outcome import Gap, Gone, Outcome, outcome_from
from tests.plugin.chaos_files import BILL, LOG, write_files

SCENARIOS = st.sampled_from(["a.py", "b.py:short", "$ bill.sh {payments.url}"])
NAMES = st.sampled_from(["stuck@task", "redone_step", "duplicate_effect@payments.charge"])
ENTRIES = st.lists(
    st.builds(Entry, scenario=SCENARIOS, finding=NAMES), unique_by=lambda e: e.key, max_size=9
)


def outcome(scenario: str, *gaps: Gap, gone: tuple[Gone, ...] = ()) -> Outcome:
    """The outcome of a campaign that found ``gaps``."""
    return Outcome(
        scenario=scenario,
        verdict="INVALID" if gaps else "VALID",
        seed=0,
        trials=4,
        earlier=None,
        points=(4, 4),
        seconds=1.0,
        gaps=gaps,
        gone=gone,
        unseen=(),
        left_out=(),
        not_tested=(),
        unknowns=(),
        run="reports/runs/x",
    )


def gap(name: str, *shown_at: str, recorded: bool = True) -> Gap:
    """A finding that the baseline knows."""
    return Gap(name, 1, "chaoskit replay ck1-x", "known", recorded, "order", shown_at)


@given(ENTRIES)
def test_a_baseline_reads_as_it_was_written_and_is_sorted(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Entry]
) -> None:
    """Entries in any order give the same bytes, which end with a line end."""
    file = tmp_path_factory.mktemp("baseline") / "chaos-baseline.json"
    write(file, entries)
    text = file.read_bytes()
    assert list(read(file)) == sorted(entries, key=lambda entry: entry.key)
    write(file, reversed(entries))
    assert file.read_bytes() == text
    assert text.endswith(b"}\n")
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_no_file_is_no_entries(tmp_path: Path) -> None:
    """The first run has none."""
    assert read(tmp_path / "none.json") == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"format": 2, "known": {}}', "has format 2, and this chaoskit reads 1"),
        ("<<<<<<< HEAD\n{}", "a merge may have left marks in it"),
        ('{"format": 1, "known": [{"scenario": "a.py"}]}', "`finding`"),
        ('{"format": 1, "known": [], "more": 1}', "unknown field `more`"),
        ("[]", "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_way_out(
    tmp_path: Path, text: str, said: str
) -> None:
    """Another version, a failed merge, a slip of the hand: nothing is guessed."""
    file = tmp_path / "chaos-baseline.json"
    file.write_text(text)
    with pytest.raises(FormatError, match=said):
        read(file)


@given(ENTRIES, st.lists(st.tuples(SCENARIOS, NAMES, st.booleans()), max_size=6))
def test_after_a_session_what_was_found_is_known_and_what_is_gone_is_not(
    entries: list[Entry], told: list[tuple[str, str, bool]]
) -> None:
    """What one campaign found stays, even where another one of the same scenario did not find it;
    what nobody looked at stays as it is.
    """
    outcomes = [
        outcome(s, gap(n, "kill@a#1")) if there else outcome(s, gone=(Gone(n, recorded=True),))
        for s, n, there in told
    ]
    after = {entry.key for entry in updated(entries, outcomes)}
    found = {(s, n) for s, n, there in told if there}
    gone = {(s, n) for s, n, there in told if not there} - found
    assert after == ({entry.key for entry in entries} | found) - gone


def test_an_entry_stays_as_it_is_while_a_trial_that_it_names_still_shows_it() -> None:
    """So that the file changes only where what is known does."""
    entry = Entry(scenario="a.py", finding="stuck@task", missing="m", shown_at=("kill@a#1",))
    same = outcome("a.py", gap("stuck@task", "kill@b#1", "kill@a#1"))
    assert updated([entry], [same]) == (entry,)
    other = outcome("a.py", gap("stuck@task", "kill@b#1"))
    (changed,) = updated([entry], [other])
    assert changed.shown_at == ("kill@b#1",)


def test_what_a_marker_knows_does_not_go_into_the_file() -> None:
    """Neither when it is found, nor when it is gone."""
    entry = Entry(scenario="a.py", finding="stuck@task")
    assert updated([], [outcome("a.py", gap("stuck@task", recorded=False))]) == ()
    gone = (Gone("stuck@task", recorded=False),)
    assert updated([entry], [outcome("a.py", gone=gone)]) == (entry,)


def test_an_outcome_travels_as_text() -> None:
    """What a worker tells is what the summary hears."""
    told = outcome("a.py", gap("stuck@task", "kill@a#1"), gone=(Gone("b", recorded=True),))
    assert outcome_from(str(told)) == told


def test_entries_of_scenarios_that_are_gone_are_found(tmp_path: Path) -> None:
    """A file that is not there, a name that is not in it; a command is nothing that can be missed,
    and a file that cannot be loaded now says nothing.
    """
    write_files(tmp_path, log=LOG, broken="import nothing_of_this_name\n")
    names = {
        "scenarios/log.py": False,  # the names that a file has are looked at where one is given
        "scenarios/log.py:bad": False,
        "scenarios/log.py:renamed": True,
        "scenarios/moved.py": True,
        "scenarios/broken.py:any": False,
        "$ bill.sh": False,
        "just/run.py": False,
    }
    entries = [Entry(scenario=name, finding="stuck@task") for name in names]
    found = {entry.scenario for entry in stale(entries, tmp_path, ["just/run.py"])}
    assert found == {name for name, is_stale in names.items() if is_stale}


TESTS = """
import pytest

@pytest.mark.chaos("scenarios/log.py:bad")
def test_log(chaos):
    chaos()

@pytest.mark.chaos("scenarios/bill.py", points=6, known={"*KNOWN*": "ticket 7"})
def test_bill(chaos):
    chaos()
""".replace("*KNOWN*", "duplicate_effect@email.*")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not traced().works, reason="whole campaigns need system calls")
def test_the_life_of_a_baseline(pytester: pytest.Pytester) -> None:
    """Written by two workers without losing anything; then an expected failure; then, when one is
    mended, a failure that says so; and pruned, with what belongs to scenarios that are gone.
    """
    write_files(pytester.path, log=LOG, bill=BILL)
    pytester.makepyfile(TESTS)
    pytester.makeini("[pytest]\nchaos_baseline = chaos-baseline.json\nchaos_jobs = 1\n")
    file = pytester.path / "chaos-baseline.json"

    result = pytester.runpytest_subprocess("--chaos-update-baseline", "-n", "2", "-rN")
    assert result.ret == 0, result.stdout.str()
    first = json.loads(file.read_text())
    assert [(e["scenario"], e["finding"]) for e in first["known"]] == [
        ("scenarios/bill.py", "duplicate_effect@payments.charge"),
        ("scenarios/log.py:bad", "diverged_state@outputs"),
    ]
    assert all(e["missing"] and e["shown_at"] for e in first["known"])

    (pytester.path / "scenarios" / "mended").touch()
    result = pytester.runpytest_subprocess("-n", "2", "--dist", "loadfile")
    text = result.stdout.str()
    result.assert_outcomes(failed=1, xfailed=1)
    assert "diverged_state@outputs is not there any more" in text
    assert "run with --chaos-update-baseline" in text
    assert "gone        diverged_state@outputs, which the baseline names" in text
    assert json.loads(file.read_text()) == first

    old = {"scenario": "scenarios/moved.py", "finding": "stuck@task"}
    file.write_text(json.dumps({"format": 1, "known": [*first["known"], old]}))
    result = pytester.runpytest_subprocess("--chaos-update-baseline", "-k", "test_log")
    result.assert_outcomes(passed=1, deselected=1)
    text = result.stdout.str()
    assert "chaos-baseline.json: removed scenarios/log.py:bad diverged_state@outputs" in text
    assert "chaos-baseline.json: removed scenarios/moved.py stuck@task" in text
    assert json.loads(file.read_text())["known"] == first["known"][:1]


def test_a_baseline_that_cannot_be_read_is_no_pass_and_is_left_alone(
    pytester: pytest.Pytester,
) -> None:
    """Another version's file fails what would use it, and is not written over; and an update needs
    a file to write to.
    """
    write_files(pytester.path, log=LOG)
    pytester.makepyfile("def test_it(chaos):\n    chaos.run('scenarios/log.py:good')\n")
    file = pytester.path / "b.json"
    file.write_bytes(msgspec.json.encode({"format": 99}))
    result = pytester.runpytest_subprocess("--chaos-baseline=b.json", "--chaos-update-baseline")
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "has format 99, and this chaoskit reads 1" in text
    assert "the baseline was not written" in text
    assert json.loads(file.read_text()) == {"format": 99}
    result = pytester.runpytest_subprocess("--chaos-update-baseline")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--chaos-update-baseline needs a file" in result.stderr.str()
