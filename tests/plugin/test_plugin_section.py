"""The section of the terminal summary: short when all is well, and never silent about a limit."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.pytest_plugin.outcome import Gap, Gone, Outcome
from chaoskit.pytest_plugin.section import lines

WELL = Outcome(
    scenario="scenarios/a.py",
    verdict="VALID",
    seed=3,
    trials=12,
    earlier=None,
    points=(12, 12),
    seconds=4.25,
    gaps=(),
    gone=(),
    unseen=(),
    left_out=(),
    not_tested=("power loss: …", "other faults: …"),
    unknowns=(),
    run="reports/runs/a",
)
NEW = Gap("stuck@task", 2, "chaoskit replay ck1-new", "", False, "", ("kill@a#1",))
OLD = Gap("redone_step", 1, "chaoskit replay ck1-old", "ticket 7", False, "", ("kill@a#2",))
BAD = msgspec.structs.replace(
    WELL, scenario="scenarios/b.py", verdict="INVALID", gaps=(NEW, OLD), run="reports/runs/b"
)
PARTIAL = msgspec.structs.replace(
    WELL, points=(5, 12), trials=5, earlier=2, left_out=("7 of 12 points were not tried",)
)
UNKNOWN = msgspec.structs.replace(
    WELL, verdict="UNKNOWN", trials=0, points=(0, 0), unknowns=("no trial was run",)
)


def test_what_is_well_takes_a_line() -> None:
    """Verdict, scenario, trials, points, seed, time; and how many limits there are."""
    assert list(lines([WELL])) == [
        "VALID    scenarios/a.py: 12 trials, killed at 12 of 12 points; seed 3, 4.2 s",
        "2 limits of what a kill can show: with -v, and under `not tested` in each report",
    ]


def test_what_is_well_is_counted_where_quiet_is_asked_for() -> None:
    """Under -q whole campaigns that are VALID are one line together."""
    assert next(iter(lines([WELL, WELL], -1))) == "VALID    2 whole campaigns, 24 trials"


def test_findings_are_told_with_their_replay_line_alone_on_its_line() -> None:
    """What is new and what is known, why, how often, and where the report is."""
    told = list(lines([BAD]))
    assert "  found       stuck@task in 2 trials" in told
    assert "  known       redone_step in 1 trial (ticket 7)" in told
    assert {"chaoskit replay ck1-new", "chaoskit replay ck1-old"} <= set(told)
    assert "  stored in   reports/runs/b" in told


OUTCOMES = [
    WELL,
    BAD,
    PARTIAL,
    UNKNOWN,
    msgspec.structs.replace(WELL, gone=(Gone("stuck@task", recorded=True),)),
    msgspec.structs.replace(WELL, unseen=("stuck@task",)),
]


@given(st.lists(st.sampled_from(OUTCOMES), max_size=5), st.integers(-2, 2))
def test_nothing_that_matters_is_left_out_however_quiet(
    outcomes: list[Outcome], verbosity: int
) -> None:
    """Every verdict but VALID, every finding, and all that was not tried is told under -q too; each
    trial is counted, and with -v every limit is said.
    """
    text = "\n".join(lines(outcomes, verbosity))
    for outcome in outcomes:
        if outcome.verdict != "VALID" or outcome.left_out:
            assert f"{outcome.verdict:<8} {outcome.scenario}" in text
        parts = (*outcome.unknowns, *outcome.left_out, *outcome.unseen)
        parts += tuple(one.name for one in outcome.gone) + tuple(g.name for g in outcome.gaps)
        parts += tuple(gap.replay for gap in outcome.gaps)
        parts += outcome.not_tested if verbosity > 0 else ()
        assert [part for part in parts if part not in text] == []


@pytest.mark.parametrize("verbosity", [-1, 0, 1])
def test_an_interrupted_campaign_that_went_on_says_so(verbosity: int) -> None:
    """Its trials before the interruption count, and are named as such."""
    assert "5 trials, 2 of them before an interruption" in "\n".join(lines([PARTIAL], verbosity))
