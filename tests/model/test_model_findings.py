"""Findings and verdicts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.checkers.check import CHECKERS
from chaoskit.model.findings import FINDING_KINDS, Diagnosis, Finding, Judgement, Verdict

FINDING = Finding(
    kind="duplicate_effect",
    operation="payments.charge",
    subject="customer=ada",
    expected="charge to ada: once",
    seen="twice",
    because="attempts 1 and 2 each did it",
)

WORDS = st.text(max_size=8)

DIAGNOSES = st.none() | st.builds(Diagnosis, WORDS, WORDS, WORDS)


def finding(kind: str, operation: str, subject: str, told: tuple[str, ...]) -> Finding:
    """A finding whose other words are ``told``."""
    return Finding(
        kind=kind,
        operation=operation,
        subject=subject,
        expected=told[0],
        seen=told[1],
        because=told[2],
    )


TOLD = st.tuples(WORDS, WORDS, WORDS)


@given(WORDS, WORDS, WORDS, TOLD, TOLD)
def test_a_fingerprint_is_that_of_kind_operation_and_subject(
    kind: str, operation: str, subject: str, told: tuple[str, ...], other: tuple[str, ...]
) -> None:
    """Equal ones have equal fingerprints, however the finding is told."""
    one = finding(kind, operation, subject, told)
    assert one.fingerprint == finding(kind, operation, subject, other).fingerprint
    assert len(one.fingerprint) == 8
    assert int(one.fingerprint, 16) >= 0


@given(st.lists(st.integers(0, 99)).map(tuple), DIAGNOSES, WORDS)
def test_a_fingerprint_does_not_know_the_evidence(
    witness: tuple[int, ...], diagnosis: Diagnosis | None, cause: str
) -> None:
    """Witness, diagnosis and cause may change while the fault stays the same."""
    told = Finding(
        kind=FINDING.kind,
        operation=FINDING.operation,
        subject=FINDING.subject,
        expected=FINDING.expected,
        seen=FINDING.seen,
        because=FINDING.because,
        witness=witness,
        diagnosis=diagnosis,
        cause=cause,
    )
    assert told.fingerprint == FINDING.fingerprint


def test_a_loss_at_the_end_has_one_fingerprint() -> None:
    """A replay that sees less of the task's records than the campaign did finds the same fault."""
    lost, false = (
        finding(kind, "email.send", "to=ada", ("", "", ""))
        for kind in ("lost_effect", "false_success")
    )
    assert lost.fingerprint == false.fingerprint


def test_a_fingerprint_is_the_same_on_every_machine() -> None:
    """It stands in stored tokens, so it may not change from one process or version to the next."""
    assert FINDING.fingerprint == "bcaede07"


@pytest.mark.parametrize(
    "other",
    [
        finding("lost_effect", "payments.charge", "customer=ada", ("", "", "")),
        finding("duplicate_effect", "payments.refund", "customer=ada", ("", "", "")),
        finding("duplicate_effect", "payments.charge", "customer=bob", ("", "", "")),
    ],
)
def test_another_fault_has_another_fingerprint(other: Finding) -> None:
    """Kind, operation and subject each tell findings apart."""
    assert other.fingerprint != FINDING.fingerprint


VERDICTS = st.sampled_from(Verdict)


@given(st.lists(VERDICTS))
def test_the_worst_verdict_wins(verdicts: list[Verdict]) -> None:
    """INVALID before UNKNOWN before VALID, in whatever order they come."""
    worst = Verdict.worst(verdicts)
    if Verdict.INVALID in verdicts:
        assert worst is Verdict.INVALID
    elif Verdict.UNKNOWN in verdicts or not verdicts:
        assert worst is Verdict.UNKNOWN
    else:
        assert worst is Verdict.VALID


@given(st.lists(VERDICTS, min_size=1), st.lists(VERDICTS, min_size=1))
def test_the_worst_of_parts_is_the_worst_of_all(one: list[Verdict], two: list[Verdict]) -> None:
    """A campaign may be judged wave by wave."""
    parts = [Verdict.worst(one), Verdict.worst(two)]
    assert Verdict.worst(parts) is Verdict.worst(one + two)


def test_no_verdict_at_all_is_unknown() -> None:
    """Nothing was judged, so nothing passes."""
    assert Verdict.worst([]) is Verdict.UNKNOWN
    assert Verdict.worst(iter([])) is Verdict.UNKNOWN


def test_each_verdict_has_its_exit_code() -> None:
    """0 valid, 1 findings, 4 unknown."""
    assert {v.value: v.exit_code for v in Verdict} == {"VALID": 0, "INVALID": 1, "UNKNOWN": 4}


def test_roots_are_what_nothing_else_explains() -> None:
    """A consequence is kept, and is no root."""
    root = finding("silent_restart", "charge", "first step", ("", "", ""))
    consequence = Finding(
        kind="duplicate_effect",
        operation="payments.charge",
        subject="customer=ada",
        expected="",
        seen="",
        because="",
        cause=root.fingerprint,
    )
    assert Judgement("INVALID", (consequence, root)).roots == (root,)


def test_every_checker_has_its_kind_of_finding_with_a_meaning() -> None:
    """The table that the glossary quotes lists exactly what the checkers can say."""
    assert set(FINDING_KINDS) == {checker.__name__ for checker in CHECKERS}
    assert all(FINDING_KINDS.values())
