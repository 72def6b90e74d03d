"""All checkers together: a history in, a judgement out. A checker that raises is UNKNOWN."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from chaoskit.checkers.binding import wrong_binding
from chaoskit.checkers.changes import (
    excused,
    needless_refusal,
    resurrected,
    stale_world,
    stale_writer,
)
from chaoskit.checkers.diagnosis import diagnose
from chaoskit.checkers.effects import duplicate_effect, false_success, lost_effect, wrong_inputs
from chaoskit.checkers.ending import leftover_process, stuck
from chaoskit.checkers.ordering import out_of_order_effect
from chaoskit.checkers.outputs import OUTPUTS, diverged_state
from chaoskit.checkers.own import Checker, asked, own_checkers
from chaoskit.checkers.steps import redone_step, silent_restart
from chaoskit.model.events import AttemptStarted, EffectApplied
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Finding, Judgement, Verdict
from chaoskit.model.history import History
from chaoskit.model.schedule import Fault, Schedule

CHECKERS: tuple[Checker, ...] = (
    silent_restart,
    redone_step,
    duplicate_effect,
    lost_effect,
    false_success,
    wrong_inputs,
    wrong_binding,
    out_of_order_effect,
    stale_world,
    resurrected,
    needless_refusal,
    stale_writer,
    stuck,
    diverged_state,
    leftover_process,
)


@dataclass(frozen=True, slots=True)
class _Broken:
    name: str
    error: str


def judge(
    history: History,
    expectation: Expectation,
    schedule: Schedule,
    checkers: Iterable[Checker] | None = None,
) -> Judgement:
    """What the checkers say of one trial.

    Args:
        history: the trial.
        expectation: what an undisturbed run does.
        schedule: the faults that were meant to land.
        checkers: the pure functions to ask; by default `CHECKERS` and those that are installed.
    """
    if checkers is None:
        checkers = (*CHECKERS, *own_checkers())
    findings: list[Finding] = []
    unknowns = list(_unknowns(history, expectation, schedule))
    for checker in checkers:
        try:
            findings.extend(asked(checker, history, expectation))
        except Exception as error:  # noqa: BLE001 - any failure of a checker means "not judged"
            name = getattr(checker, "__name__", repr(checker))
            unknowns.append(f"the checker {name} failed: {type(error).__name__}: {error}")
    findings = [f for f in findings if _stands(f, history) and not excused(f, history, expectation)]
    findings = _with_causes(findings, history)
    explained = tuple(
        finding
        if finding.diagnosis is not None
        else msgspec.structs.replace(finding, diagnosis=diagnose(finding, history, expectation))
        for finding in findings
    )
    verdict = Verdict.INVALID if explained else Verdict.UNKNOWN if unknowns else Verdict.VALID
    return Judgement(verdict.value, explained, tuple(unknowns), _end(history))


def _stands(finding: Finding, history: History) -> bool:
    """Whether events that were left out could not refute a finding: a loss they could."""
    return history.left_out is None or finding.kind not in {"lost_effect", "false_success"}


def _unknowns(history: History, expectation: Expectation, schedule: Schedule) -> Iterator[str]:
    """Why this trial proves nothing, even without a finding."""
    landed = {body.fault for _, body in history.landed}
    for attempt, faults in enumerate(schedule.attempts, 1):
        for fault in faults:
            if not any(b.attempt == attempt and b.fault == str(fault) for _, b in history.landed):
                why = _too_early(fault, attempt, history, expectation)
                yield f"{fault} of attempt {attempt} did not land{why}"
    if landed and any(body.how == "killed" and body.code != 9 for _, body in history.attempts):
        yield "an attempt that was killed did not die of signal 9"
    if (cut := history.left_out) is not None:
        yield (
            f"attempt {cut.attempt} went beyond the {cut.limit:,} events that are kept of a trial, "
            f"{cut.most:,} of them {cut.what}: what came later is not known"
        )
    if not expectation.evidence:
        yield "no effect and no declared output: there is nothing to judge by"


def _too_early(fault: Fault, attempt: int, history: History, expectation: Expectation) -> str:
    """Why a change did not take place that comes after a step of its own; empty: for another
    reason.
    """
    terms = expectation.changes.get(str(fault).removeprefix("change:"))
    began = next((i for i, body in history.of(AttemptStarted) if body.attempt == attempt), None)
    if terms is None or not terms.after or began is None:
        return ""
    done = history.done_at(terms.after)
    if done is not None and done < began:
        return ""
    return f": {terms.after} (its after=) was not done before; kill the task later"


def _with_causes(findings: list[Finding], history: History) -> list[Finding]:
    """Mark findings that another one of the same trial brought about.

    A restart runs finished steps again, and a step that runs again has its effects again: that is
    one fault with its consequences, not three.
    """
    restart = next((f for f in findings if f.kind == "silent_restart"), None)
    restarted = _attempt_of(restart, history) if restart is not None else 0
    stale = next((f for f in findings if f.kind == "stale_writer"), None)
    diverged = next((f for f in findings if f.kind == "diverged_state"), None)
    redone = {
        _attempt_of(f, history): f
        for f in findings
        if f.kind == "redone_step" and not _by_itself(f, history)
    }

    def cause(finding: Finding) -> str:
        if diverged is not None and (finding.kind, finding.operation) == ("false_success", OUTPUTS):
            return diverged.fingerprint
        again = finding.kind in {"duplicate_effect", "redone_step"}
        if restart is not None and again and _attempt_of(finding, history) >= restarted:
            return restart.fingerprint
        if stale is not None and again and set(stale.witness[1:]) & set(finding.witness):
            return stale.fingerprint
        if finding.kind == "duplicate_effect":
            culprit = redone.get(_attempt_of(finding, history))
            return culprit.fingerprint if culprit is not None else ""
        return ""

    return [msgspec.structs.replace(finding, cause=cause(finding)) for finding in findings]


def _attempt_of(finding: Finding, history: History) -> int:
    """The attempt of a finding's last witness; 0 where it has none."""
    if not finding.witness:
        return 0
    body = history.events[finding.witness[-1]].body
    return int(getattr(body, "attempt", 0)) if not isinstance(body, EffectApplied) else body.attempt


def _by_itself(redone: Finding, history: History) -> bool:
    """Whether one attempt did it twice; what else it repeated has another reason."""
    return len({getattr(history.events[i].body, "attempt", 0) for i in redone.witness}) == 1


def _end(history: History) -> str:
    if history.completed:
        return "completed"
    stated = history.stated_end
    if stated is None:
        return "stuck"
    return "refused" if stated.end == "refused" else f"unknown outcome of {stated.step or 'a step'}"
