"""What the terminal's report says, and how its lines end."""

from __future__ import annotations

import io
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from chaoskit.campaign.store import Store
from chaoskit.model.findings import Diagnosis
from chaoskit.reporting import markdown
from chaoskit.reporting.explanations import EXPLANATIONS
from chaoskit.reporting.summary import NO_TRIAL, Points, ReportedFinding, Summary, summarize
from chaoskit.reporting.terminal import causes, show

EXAMPLES = Path(__file__).resolve().parents[2] / "reports" / "examples"

SMALL = Summary(
    format=1,
    chaoskit="1.0",
    scenario="a.py",
    title="a.py",
    verdict="VALID",
    seed=7,
    elapsed_s=23.1,
    mechanisms=("calls",),
    points=Points(1, 1, 1),
    trials=1,
    kills=1,
    real_kills=1,
    copies=1,
    depth=1,
    verdicts={},
    ends={},
    effects=1,
    findings=(),
    unknowns=(),
    not_tested=("power loss",),
    volatile={},
    run="runs/a",
    late=1,
    power_cuts=1,
    other_faults=1,
    states=1,
)


def duplicate(schedule: str, missing: str) -> ReportedFinding:
    """A charge that was doubled, with its diagnosis."""
    return ReportedFinding(
        kind="duplicate_effect",
        point=schedule,
        schedule=schedule,
        operation="payments.charge",
        subject="ada",
        expected="charge: once",
        seen="twice",
        because="attempts 1 and 2 each did it",
        diagnosis=Diagnosis(missing, "seen", f"mend {missing}") if missing else None,
        consequences=(),
        fingerprint="12345678",
        replay="chaoskit replay ck1-x",
    )


def changed(**fields: object) -> Summary:
    """The small summary with other ``fields``."""
    return msgspec.structs.replace(SMALL, **fields)


def printed(summary: Summary, width: int = 200, *, terminal: bool = False) -> str:
    """What is shown, without colours."""
    out = io.StringIO()
    show(summary, Console(file=out, width=width, no_color=True, force_terminal=terminal))
    return out.getvalue()


CAUSES = st.lists(
    st.builds(duplicate, st.sampled_from("abcdef"), st.sampled_from(["", "key", "late"])),
    max_size=12,
)


@given(CAUSES)
def test_each_diagnosis_is_told_apart_with_its_own_count(findings: list[ReportedFinding]) -> None:
    """Terminal and Markdown have one entry for each, the largest first, with the same counts."""
    summary = changed(findings=tuple(findings), verdict="INVALID")
    wanted = [len({f.schedule for f in cause}) for cause in causes(findings)]
    assert wanted == sorted(wanted, reverse=True)
    assert len(wanted) == len({f.diagnosis for f in findings})
    told = re.findall(
        r"duplicate_effect  payments\.charge, in (\d+) trials?$", printed(summary), re.MULTILINE
    )
    assert [int(number) for number in told] == wanted
    rows = re.findall(r"\| `payments\.charge` \| (\d+) \|", markdown.render(summary))
    assert [int(number) for number in rows] == wanted
    for finding in findings:
        if finding.diagnosis is not None:
            assert finding.diagnosis.mend in printed(summary)


BETWEEN = st.sampled_from(["sendto(payments)", "write(log)", "rename(new->done)", "fsync(log)"])


@given(st.lists(st.tuples(st.integers(1, 9), BETWEEN, st.sampled_from(["", "a.py:3"])), min_size=1))
def test_who_is_concerned_is_told_once_and_each_place_once(
    found: list[tuple[int, str, str]],
) -> None:
    """Of a hundred customers at one line of the task one is written out, and the others named."""
    findings = tuple(
        msgspec.structs.replace(
            duplicate(f"kill@{call}#{n}", "order"),
            subject=f"customer {n}",
            expected=f"charge of customer {n}: once",
            between=f"after payments.charge#{n}, before {call}#{n + 1}",
            code=code,
        )
        for n, call, code in found
    )
    text = printed(changed(findings=findings, verdict="INVALID"))
    written = re.findall(r"where +kill@(\S+)#(\d)\n.*\n(?: +in code +(\S+)\n)?", text)
    places = [code or call for call, _, code in written]
    assert 1 <= len(places) == len(set(places)) <= 3
    also = re.findall(r"charge of customer (\d)", "".join(re.findall(r"also: .*", text)))
    told = [number for _, number, _ in written] + also
    assert sorted(told) == sorted({str(n) for n, _, _ in found})


def test_one_of_something_is_told_in_the_singular() -> None:
    """One effect, one trial, one request, one loss of power, one state."""
    text = printed(SMALL)
    assert "1 trial, killed at 1 of 1 points, against 1 expected effect;" in text
    assert "1 request that lands late, 1 trial of other faults, 1 loss of power" in text
    assert "1 trial went on from 1 state that was copied; 1 was a real kill (" in text


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, True),
        ({"trials": 0, "verdict": "UNKNOWN", "unknowns": (NO_TRIAL,)}, True),
        ({"trials": 0, "verdict": "UNKNOWN", "unknowns": ("the task fails",)}, False),
    ],
    ids=["tried", "nothing-tried", "survey-failed"],
)
def test_limits_do_not_bury_why_the_survey_failed(fields: dict[str, object], told: bool) -> None:
    """What is unknown and where it is stored is all that is said then."""
    text = printed(changed(**fields))
    assert ("not tested" in text) == told
    assert "runs/a" in text
    assert all(f"unknown: {reason}" in text for reason in fields.get("unknowns", ()))  # type: ignore[attr-defined]


@given(st.integers(20, 120))
def test_no_line_ends_with_blanks_where_no_terminal_is(width: int) -> None:
    """And no other word is lost by that."""
    summary = changed(findings=(duplicate("a", "key"),), verdict="INVALID")
    plain, padded = printed(summary, width), printed(summary, width, terminal=True)
    assert all(line == line.rstrip() for line in plain.splitlines())
    assert plain.split() == re.sub(r"\x1b\[[\d;]*m", "", padded).split()


@given(st.integers(20, 120))
def test_no_number_is_parted_from_its_unit(width: int) -> None:
    """The seconds and the seed stand on one line, and no line is longer than there is room."""
    lines = printed(SMALL, width).splitlines()[:8]
    assert any("23.1 s" in line for line in lines)
    assert any("seed 7" in line for line in lines)
    assert all(len(line) <= width for line in lines)


@pytest.mark.parametrize("name", ["mailmerge", "record_after_effect"])
def test_states_are_those_that_copies_went_on_from(name: str) -> None:
    """A real kill's state is none of them, so there are no more states than such trials."""
    with Store(EXAMPLES / name) as store:
        summary = summarize(store)
        copied = {trial.world for trial in store.trials() if not trial.real and trial.wave > 0}
    assert summary.states == len(copied - {""}) <= summary.copies


def test_stuck_is_explained_by_both_its_causes() -> None:
    """A lock that was left, and a record that was torn: each with its mend."""
    known = EXPLANATIONS["stuck"]
    assert all(word in known.how for word in ("lock", "torn"))
    assert all(word in known.mend for word in ("flock", "rename"))


def test_a_restart_may_be_for_want_of_the_command_that_resumes() -> None:
    """The advice names the option."""
    assert "--resume" in EXPLANATIONS["silent_restart"].mend
