"""What a run can end with besides success, and what its caller can get wrong.

Two ends are legal, carry an exit code and are told to a watching trial: `Refused` and
`OutcomeUnknown`. Everything else here is a mistake in the calling code.
"""

from __future__ import annotations

import shlex
from typing import TypeVar

from chaoskit import probe


class RunError(Exception):
    """Anything that this runtime raises of its own accord."""


class Refused(RunError):
    """This run does not go on, for the reason in the message; nothing was changed."""

    exit_code = 75
    told = False
    """Whether a watching trial has been told; see `announced`."""


class DamagedStore(Refused):
    """The file is not a whole store of runs. It is never replaced by a fresh one silently."""


class OlderStore(DamagedStore):
    """The store was replaced by an older copy, or has gone: its mark knows later records."""


class StoreUnavailable(Refused):
    """The store cannot be written or read just now (full disk, lock, rights). Nothing is lost:
    the same run, even the same `Run`, goes on once the reason in the message is removed.
    """


class Owned(Refused):
    """Another process owns the run, or nobody can prove that it is dead."""


class StaleOwner(Refused):
    """This process was the owner; another one has taken the run over, and nothing was written."""


class OtherInputs(Refused):
    """The run, or a step, was recorded with other inputs or options."""


class CodeChanged(Refused):
    """The steps that the code takes are not those that were recorded, or stand elsewhere."""


class ToolChanged(Refused):
    """A tool that the run was started with is missing, or is another one."""


class StaleWorld(Refused):
    """What a step depends on is not as it was when it was pinned."""


class Cancelled(Refused):
    """The run was cancelled: no step begins any more."""


class Poisoned(Refused):
    """A step's body was begun too often without an end: it seems to kill its process."""


class RetriesExhausted(Refused):
    """A step failed as often as its retries allow, over all attempts."""


class OverBudget(Refused):
    """A step would cost more than is left of a budget; it was not begun."""


class Compensating(Refused):
    """The run is being taken back, so no forward step begins: call `Run.compensate`.

    The only refusal that a task catches as a matter of course; a trial is told of it only if
    nobody does.
    """


class Replanned(RunError):
    """The world changed, and the plan with it: begin the function anew; `run_main` does so."""

    def __init__(self, pin: str, steps: tuple[str, ...]) -> None:
        super().__init__(pin, steps)
        self.pin = pin
        self.steps = steps

    def __str__(self) -> str:
        return (
            f"{self.pin!r} changed, and these steps are to be taken again: "
            f"{', '.join(self.steps) or 'none'}. Call the task's function again from its start"
        )


class OutcomeUnknown(RunError):
    """Nobody but a person can tell whether ``step`` happened; see `chaoskit.runtime.settle`."""

    exit_code = 76
    told = False

    def __init__(self, step: str, reason: str) -> None:
        super().__init__(step, reason)
        self.step = step
        self.reason = reason

    def __str__(self) -> str:
        return f"the outcome of step {self.step!r} is unknown: {self.reason}"


class Misuse(RunError):
    """The calling code asks for something that has no meaning; the message has the fix."""


class DuplicateStep(Misuse):
    """One step name was used twice in one attempt, so that the two could not be told apart."""


class UnstorableResult(Misuse):
    """A result that a resume could not give back exactly as it was."""


LegalEnd = TypeVar("LegalEnd", bound=Refused | OutcomeUnknown)


def announced(end: LegalEnd) -> LegalEnd:
    """``end`` itself, told to the trial that watches this process, if any; for ``raise``."""
    if isinstance(end, OutcomeUnknown):
        probe.unknown_outcome(end.step, end.reason)
    else:
        probe.refused(str(end))
    end.told = True
    return end


def command(*words: object) -> str:
    """What a person types: ``chaoskit runs`` and the words, quoted for a shell."""
    return shlex.join(["chaoskit", "runs", *map(str, words)])


def nearest(wrong: str, names: object) -> str:
    """``names`` for a message, those most like ``wrong`` first, at most six."""
    from difflib import get_close_matches

    known = sorted(map(str, names))  # type: ignore[call-overload]
    close = get_close_matches(wrong, known, n=3)
    shown = [*close, *(name for name in known if name not in close)][:6]
    return ", ".join(shown) + (", …" if len(known) > len(shown) else "") if known else "none"


def not_written(  # noqa: PLR0913 - all that decides it
    place: str, run_id: str, step: str, token: int, *, found: int, cancelled: str | None
) -> Refused:
    """Why a record of a step was not written: the token, a cancellation, or another record.

    Args:
        place: the store's.
        run_id: the run's.
        step: the step's.
        token: the writer's.
        found: the run's own token.
        cancelled: why the run was cancelled, if that forbids the record.
    """
    if found != token:
        return stale_owner(run_id, token, found)
    if cancelled is not None:
        return cancelled_run(place, run_id, cancelled)
    return announced(
        Refused(
            f"step {step!r} of run {run_id!r} was recorded by another process meanwhile: let "
            "one process at a time work on a run"
        )
    )


def stale_owner(run_id: str, token: int, found: int) -> StaleOwner:
    """The refusal of a writer that has been replaced."""
    return announced(
        StaleOwner(
            f"run {run_id!r} has been taken over by another process: this one has the token "
            f"{token}, the run has {found}. Nothing was written; end this process"
        )
    )


def cancelled_run(place: str, run_id: str, reason: str) -> Cancelled:
    """The refusal of a step of a run that was cancelled."""
    return announced(
        Cancelled(
            f"run {run_id!r} was cancelled ({reason}): no step begins any more. To go on all the "
            f"same: {command('uncancel', place, run_id)}"
        )
    )
