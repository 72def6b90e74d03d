"""When a step is complete because the task has recorded it, as undisturbed runs show it."""

from __future__ import annotations

import msgspec
import pytest

from chaoskit.explore.completion import with_records
from chaoskit.model.expectation import Expectation
from chaoskit.model.history import History
from tests.checkers.builder import Story, charge, expecting

ADA, BOB = charge("ada"), charge("bob")
ALL = expecting(ADA, BOB)


def taught(*runs: History, expected: Expectation = ALL) -> dict[str, str]:
    """The customer whose charge is recorded, by point."""
    known = with_records(expected, runs or ()).recorded
    return {point: dict(step.identity.fields)["customer"] for point, step in known.items()}


def run(*lines: str) -> History:
    """A run in short: ``ada`` and ``bob`` are charged, ``look`` looks, others are calls."""
    story = Story().starts()
    for line in lines:
        if line in {"ada", "bob"}:
            story.does(ADA if line == "ada" else BOB)
        elif line == "look":
            story.looks("payments", "search")
        else:
            story.calls(line)
    return story.ends().history


def test_a_step_is_recorded_from_the_last_call_on_files_before_the_next_one() -> None:
    """After it, and at all points until the next effect is asked for; a sync records nothing."""
    once = run("ada", "write(t)#1", "rename(t->done)#1", "fsync(.)#1", "look", "bob")
    assert taught(once, once) == {
        "rename(t->done)#1+after": "ada",
        "fsync(.)#1": "ada",
        "fsync(.)#1+after": "ada",
        "payments.search#1.received": "ada",
        "payments.search#1.applied": "ada",
        "payments.search#1.answered": "ada",
    }


@pytest.mark.parametrize(
    ("lines", "last"),
    [
        (("ada", "write(done)#1", "bob", "write(done)#2"), "write(done)#2+after"),
        (("ada", "write(done-1)#1", "bob", "write(done-2)#1", "unlink(lock)#1"), "unlink(lock)#1"),
        # what is written between the two, and not after the last: an intent, and a log besides
        (("write(plan)#1", "ada", "write(log)#1", "write(plan)#2", "bob", "write(log)#2"), ""),
        (("ada", "write(done)#1", "bob"), ""),
        (("ada", "write(done)#1", "bob", "write(database:books.db)#1"), ""),
    ],
)
def test_the_last_step_is_recorded_where_the_same_files_change_as_after_the_others(
    lines: tuple[str, ...], last: str
) -> None:
    """Otherwise what it writes at the end may be anything."""
    found = taught(run(*lines), run(*lines))
    points = [point for point, who in found.items() if who == "bob"]
    assert points == [last if last.endswith("+after") else f"{last}+after"] if last else not points


@pytest.mark.parametrize(
    ("lines", "known"),
    [
        (("ada", "write(done)#1"), True),
        (("write(state)#1", "ada", "write(state)#2"), True),
        (("write(intent)#1", "ada", "write(log)#1"), False),
    ],
)
def test_of_an_only_step_any_record_counts_unless_another_file_was_written_before(
    lines: tuple[str, ...], known: bool
) -> None:
    """A task that writes an intent and then a log line knows only of what came before."""
    found = taught(run(*lines), run(*lines), expected=expecting(ADA))
    assert bool(found) == known


def test_only_what_all_runs_agree_on_counts() -> None:
    """Where one run had recorded a step and another one had not, nothing is known."""
    early = run("ada", "write(done)#1", "write(log)#1", "bob")
    late = run("ada", "write(log)#1", "write(done)#1", "bob")
    assert taught(early, late) == {}
    assert taught(early, early) == {"write(log)#1+after": "ada"}


@pytest.mark.parametrize("known", [{"ordered": False}, {"steps": ("charge",)}])
def test_calls_prove_nothing_where_requests_overlap_or_steps_are_reported(
    known: dict[str, object],
) -> None:
    """The first says too little, the second says more."""
    once = run("ada", "write(done)#1", "bob", "write(done)#2")
    assert taught(once, once, expected=msgspec.structs.replace(ALL, **known)) == {}
