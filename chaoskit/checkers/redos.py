"""Why a finished step was run again, as far as the history shows it."""

from __future__ import annotations

from chaoskit.checkers.progress import progress
from chaoskit.checkers.work import Redo
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Diagnosis, Finding
from chaoskit.model.history import History

TWICE_HERE = "one attempt runs a step more than once"
RECORD_IGNORED = "resume does not go by the record that is there"
NOT_A_RECORD = "what the task writes after a step does not keep its resume from running it again"
UNRECORDED = "no call is known that records the step when it is done"
UNKNOWN_RECORD = "nothing kept the resume from running a finished step again"
NOTHING = "no checkpoint: nothing durable says how far the task came"

_CURE = "record each completed step durably, with its result, before the next one begins"
_READ = "read the record of each completed step before running it"


def run_again(finding: Finding, history: History, expectation: Expectation) -> Diagnosis | None:
    """The cause of a `redone_step`: a record that was there, one that was not, or neither seen."""
    redo = _redo(finding, history, expectation)
    if redo is None:
        return None
    if redo.within:
        return Diagnosis(
            TWICE_HERE,
            f"attempt {redo.attempt} completed it at event {redo.first.index} and began it again "
            f"at event {redo.again.index}",
            "find what calls it again within one attempt (a loop, a list that names it twice), and "
            "do it once",
        )
    if (record := _record(redo, history)) is not None:
        return Diagnosis(
            RECORD_IGNORED,
            f"{record} before attempt {redo.first.attempt} was ended, and attempt {redo.attempt} "
            "ran it again",
            _READ,
        )
    if (call := _written_after(redo, expectation)) is not None:
        evidence = f"an undisturbed run makes the call {call} after the step; {finding.because}"
        return Diagnosis(NOT_A_RECORD, evidence, f"{_CURE}; {_READ}")
    missing = UNRECORDED if expectation.recorded else UNKNOWN_RECORD
    return Diagnosis(missing, finding.because, _CURE)


def started_over(finding: Finding, history: History, expectation: Expectation) -> Diagnosis | None:
    """The cause of a `silent_restart`: a record that is not read, or none that is known."""
    redo = _redo(finding, history, expectation)
    if redo is None:
        return None
    made = progress(history, expectation).redone
    mine = [other for other in made if other.attempt == redo.attempt]
    cure = "store which steps are complete where the next attempt finds it"
    records = (_record(other, history) for other in mine)
    if (record := next(filter(None, records), None)) is not None:
        evidence = f"{record} before attempt {redo.attempt} began; {finding.because}"
        return Diagnosis(RECORD_IGNORED, evidence, f"{_READ}; {cure}")
    calls = (_written_after(other, expectation) for other in mine)
    if (call := next(filter(None, calls), None)) is not None:
        evidence = f"an undisturbed run makes the call {call} after a step; {finding.because}"
        return Diagnosis(NOT_A_RECORD, evidence, f"{_READ}; {cure}")
    return Diagnosis(NOTHING, f"no record is known that was written; {finding.because}", cure)


def _redo(finding: Finding, history: History, expectation: Expectation) -> Redo | None:
    """What the finding is about: its last witness is the event that began the work again. None for
    one that another checker made.
    """
    made = progress(history, expectation).redone
    return next((redo for redo in made if redo.again.index in finding.witness[-1:]), None)


def _record(redo: Redo, history: History) -> str | None:
    """What is known of a record that was there when the first attempt ended."""
    first = redo.first
    if first.by:
        return f"{first.by} recorded the step"
    reported = any(index == first.index and b.phase == "recorded" for index, b in history.steps)
    return f"the task reported step {first.name} as recorded" if reported else None


def _written_after(redo: Redo, expectation: Expectation) -> str | None:
    """The last call on a file that an undisturbed run makes after the step, before the next one."""
    steps = expectation.recorded.values()
    return next((step.by for step in steps if step.identity == redo.first.identity), None)
