"""Two runs of a task: what got fixed, what is new, what remains, and where two trials part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from chaoskit.campaign.store import Store
from chaoskit.reporting.differences import Differences, compare
from tests.campaign.small_task import Care, small_task
from tests.reporting.conftest import campaign

APPLIED = "kill@payments.charge#2.applied"
RECEIVED = "kill@payments.charge#2.received"

Run = Callable[..., Path]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs the small task, always in the same file, with some care at some schedules."""
    folder = tmp_path_factory.mktemp("differences")

    def made(care: Care, *only: str, inputs: object = ("ada", "bob", "cyd")) -> Path:
        target = small_task(folder, care, inputs)
        return campaign(target, folder / "runs", only=only, fresh=True)

    return made


def differences(first: Path, second: Path, schedule: str = "") -> Differences:
    """Of two stored runs."""
    with Store(first) as one, Store(second) as other:
        return compare(one, other, schedule)


@pytest.fixture(scope="module")
def broken(run: Run) -> Path:
    """Charges without a key, killed before and after one charge."""
    return run("none", APPLIED, RECEIVED)


def test_a_mended_flaw_is_fixed_where_it_was_tried_again(run: Run, broken: Path) -> None:
    """It is named with the trials that showed it, nothing is new, and the run is not worse."""
    found = differences(broken, run("keyed", APPLIED, RECEIVED))
    (fixed,) = found.fixed
    assert (fixed.flaw.kind, fixed.flaw.operation) == ("duplicate_effect", "payments.charge")
    assert (fixed.before, fixed.after, fixed.went) == ((APPLIED,), (), (APPLIED,))
    assert not (found.new or found.remaining or found.untried)
    assert not found.worse


def test_a_flaw_that_nobody_looked_for_is_not_fixed(run: Run, broken: Path) -> None:
    """Its trials were not tried again, so that it is named apart."""
    found = differences(broken, run("keyed", RECEIVED))
    assert not found.fixed
    (untried,) = found.untried
    assert untried.before == (APPLIED,)


def test_a_new_flaw_makes_the_later_run_worse(run: Run, broken: Path) -> None:
    """It is new, and came at a trial that the earlier run had tried."""
    found = differences(run("keyed", APPLIED, RECEIVED), broken)
    (new,) = found.new
    assert new.flaw.kind == "duplicate_effect"
    assert (new.before, new.came) == ((), (APPLIED,))
    assert found.worse


def test_a_run_does_not_differ_from_itself(broken: Path) -> None:
    """The flaw remains, no trial parts, nothing came or went."""
    found = differences(broken, broken, APPLIED)
    (remains,) = found.remaining
    assert (remains.came, remains.went) == ((), ())
    assert not (found.came or found.went or found.notes or found.worse)
    assert found.parting is not None
    assert found.parting.number is None


def test_the_same_trial_of_two_runs_does_not_part(run: Run, broken: Path) -> None:
    """Times, ids and keys that vary from run to run are no difference."""
    found = differences(broken, run("none", APPLIED, RECEIVED), APPLIED)
    assert found.parting is not None
    assert found.parting.number is None
    assert found.parting.verdicts == ("INVALID", "INVALID")


def test_the_trial_whose_verdict_changed_is_followed_to_where_it_parts(
    run: Run, broken: Path
) -> None:
    """By default: up to the resume both are alike, and then only one of them charges again."""
    parting = differences(broken, run("keyed", APPLIED, RECEIVED)).parting
    assert parting is not None
    assert (parting.schedule, parting.verdicts) == (APPLIED, ("INVALID", "VALID"))
    assert parting.shared is not None
    assert parting.before is not None
    assert parting.after is not None
    assert parting.shared.attempt == parting.before.attempt == parting.after.attempt == 2
    assert parting.before.what.startswith("did charge of 1.00 EUR")
    assert parting.after.what == ("charge#1 answered 200, the answer to an earlier one again")


def test_points_that_came_or_went_are_named(run: Run, broken: Path) -> None:
    """A shorter input has fewer points; the note says what else differs, if anything."""
    shorter = run("none", APPLIED, inputs=("ada", "bob"))
    found = differences(broken, shorter)
    gone = tuple(f"payments.charge#3.{window}" for window in ("received", "applied", "answered"))
    assert (found.came, found.went) == ((), gone)
    assert differences(shorter, broken).came == gone
