"""What a run can end with besides success, and what its caller can get wrong.

Two ends are legal, carry an exit code and are told to a watching trial: `Refused` and
`OutcomeUnknown`. Everything else here is a mistake in the calling code.
"""

from __future__ import annotations

from typing import TypeVar

from chaoskit import probe


class RunError(Exception):
    """Anything that this runtime raises of its own accord."""


class Refused(RunError):
    """This run does not go on, for the reason in the message; nothing was changed."""

    exit_code = 75


class DamagedStore(Refused):
    """The file is not a whole store of runs. It is never replaced by a fresh one silently."""


class OutcomeUnknown(RunError):
    """Nobody but a person can tell whether ``step`` happened; see `chaoskit.runtime.settle`."""

    exit_code = 76

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
    return end
