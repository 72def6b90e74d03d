"""Findings, diagnoses, verdicts: what the checkers say of a history."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import Enum

import msgspec

FINDING_KINDS: dict[str, str] = {
    "duplicate_effect": "an effect happened more often than the contract allows",
    "lost_effect": "an expected effect never happened, although the task went on past it",
    "redone_step": "a completed step was run again",
    "silent_restart": "the task started over from its first step and said nothing",
    "false_success": "the task claims success, and its end was never done or an output is lost",
    "wrong_inputs": "an effect happened with values that no undisturbed run has",
    "stale_world": "an effect happened on terms that had changed while the task was stopped",
    "wrong_binding": "a result or an effect was bound to another step than its own",
    "stale_writer": "a former runner went on having effects after a newer one had taken over",
    "resurrected": "the task went on after it had been cancelled",
    "needless_refusal": "the task refused to go on although nothing that it needs had changed",
    "out_of_order_effect": "an earlier effect on one person or thing happened after a later one",
    "stuck": "the task never ended by itself, however often it was resumed",
    "diverged_state": "the files it leaves differ from those of an undisturbed run",
    "leftover_process": "processes of the task were still running after it had ended",
}
"""Every kind of finding with its meaning; `docs/glossary.md` quotes this table."""


class Verdict(Enum):
    """The three validities; the worst of several wins."""

    VALID = "VALID"
    UNKNOWN = "UNKNOWN"
    INVALID = "INVALID"

    @property
    def exit_code(self) -> int:
        """0 valid, 1 findings, 4 unknown."""
        return {"VALID": 0, "INVALID": 1, "UNKNOWN": 4}[self.value]

    @staticmethod
    def worst(verdicts: Iterable[Verdict]) -> Verdict:
        """INVALID before UNKNOWN before VALID; nothing at all is UNKNOWN."""
        seen = set(verdicts)
        for verdict in (Verdict.INVALID, Verdict.UNKNOWN, Verdict.VALID):
            if verdict in seen:
                return verdict
        return Verdict.UNKNOWN


class Diagnosis(msgspec.Struct, frozen=True):
    """Which gap in the checkpoint explains a finding, and what in the history says so.

    ``missing`` names the gap, with the number of a known failure or class of them if there is one.
    """

    missing: str
    evidence: str
    mend: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One violated promise with the smallest set of events that shows it.

    ``subject`` tells findings of one kind apart (the identity's digest, the step, the path);
    ``cause`` is the fingerprint of a finding of the same trial that brought this one about.
    """

    kind: str
    operation: str
    subject: str
    expected: str
    seen: str
    because: str
    witness: tuple[int, ...] = ()
    diagnosis: Diagnosis | None = None
    cause: str = ""

    @property
    def fingerprint(self) -> str:
        """Eight hex digits that stay the same as long as the fault is the same.

        Whether a missing last effect is a loss or a false success depends on how much a run shows
        of the task's records, so both have the same.
        """
        kind = "lost_effect" if self.kind == "false_success" else self.kind
        text = f"{kind}|{self.operation}|{self.subject}"
        return hashlib.sha256(text.encode()).hexdigest()[:8]


class Judgement(msgspec.Struct, frozen=True):
    """What all checkers together say of one trial."""

    verdict: str
    findings: tuple[Finding, ...] = ()
    unknowns: tuple[str, ...] = ()
    end: str = "completed"

    @property
    def roots(self) -> tuple[Finding, ...]:
        """The findings that no other finding of this trial explains."""
        return tuple(finding for finding in self.findings if not finding.cause)
