"""The words of a step's refusals: what stands against it, and the exact command that helps."""

from __future__ import annotations

from datetime import timedelta

from chaoskit.runtime.errors import (
    OtherInputs,
    OutcomeUnknown,
    Owned,
    Poisoned,
    Refused,
    RetriesExhausted,
    command,
)
from chaoskit.runtime.records import Plan, StepRecord


def other_inputs(step: str, found: str) -> OtherInputs:
    """A step that was recorded with other inputs."""
    return OtherInputs(
        f"step {step!r} was recorded with other inputs: {found}. Resume with the recorded inputs, "
        "or start another run with another run_id"
    )


def other_order(record: StepRecord, plan: Plan) -> Refused:
    """A step that was begun in another order than the code has now."""
    return Refused(
        f"step {plan.name!r} was begun with order={record.order} and would go on with "
        f"order={plan.order}, which reads the same record as something else: resume with the "
        "recorded order, or settle the step first"
    )


def compensating(run_id: str, step: str) -> str:
    """A forward step of a run that is being taken back."""
    return (
        f"run {run_id!r} is being taken back, so step {step!r} does not begin: catch Compensating, "
        "call run.compensate() and finish"
    )


def forked(run_id: str, owner: int) -> Owned:
    """A child process that uses the run of its parent."""
    return Owned(
        f"this process is a fork of process {owner}, which owns run {run_id!r}: take its steps "
        "there, or open another run after the fork"
    )


def unknown(place: str, run_id: str, record: StepRecord) -> OutcomeUnknown:
    """A begun step of which nothing can tell whether it happened."""
    return OutcomeUnknown(
        record.name,
        f"it was begun (attempt {record.attempt}, key {record.key}) and its completion was never "
        f"recorded. {_settle(place, run_id, record.name)}",
    )


def key_too_old(
    place: str, run_id: str, record: StepRecord, now: float, lasts_s: float
) -> OutcomeUnknown:
    """A begun step whose key the service has forgotten by now."""
    age = _time(now - (record.begun_at or now))
    return OutcomeUnknown(
        record.name,
        f"its key {record.key} is too old: the step was first begun {age} ago, and the service "
        f"remembers a key for {_time(lasts_s)}, so that calling again could do it twice. "
        f"{_settle(place, run_id, record.name)}",
    )


def unknown_at_finish(place: str, run_id: str, steps: tuple[str, ...]) -> OutcomeUnknown:
    """A run whose steps are all behind it, some of them in doubt."""
    return OutcomeUnknown(
        steps[0],
        f"the run cannot finish while steps are in doubt, because it would forget them: "
        f"{', '.join(steps)}. Take each step again, or settle it. "
        f"{_settle(place, run_id, steps[0])}",
    )


def poisoned(place: str, run_id: str, record: StepRecord) -> Poisoned:
    """A step that seems to kill its process."""
    return Poisoned(
        f"step {record.name!r} was begun {record.crashes} times without an end, so it seems to "
        "kill its process: it is not begun again. Once the cause is removed: "
        f"{command('settle', place, run_id, record.name, 'did-not-happen')} (or happened, if it "
        "did), or raise crashes_max="
    )


def exhausted(place: str, run_id: str, record: StepRecord, retries: int) -> RetriesExhausted:
    """A step that has failed as often as it may."""
    return RetriesExhausted(
        f"step {record.name!r} has failed {record.failures} times over all attempts, and may be "
        f"tried again {retries} times: it is not begun again. Once the cause is removed: "
        f"{command('settle', place, run_id, record.name, 'did-not-happen')} (or happened, if it "
        "did), or raise retries="
    )


def _settle(place: str, run_id: str, step: str) -> str:
    return (
        "Find out whether it happened, then "
        f"{command('settle', place, run_id, step, 'happened')} (or did-not-happen; in Python "
        f"chaoskit.runtime.settle({place!r}, {run_id!r}, {step!r}, happened=True or False)) and "
        "resume"
    )


def _time(seconds: float) -> str:
    """A length of time for people, to the second: ``7 days, 0:00:00``."""
    return str(timedelta(seconds=round(seconds)))
