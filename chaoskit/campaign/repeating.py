"""The same trial again and again: is what it showed steady or flaky, and how often does it show?

The repeats are trials of their own, and the one that called for them is none of them: it was chosen
for what it showed, so that counting it would make the finding look more frequent than it is.

    result = await real_trial(...)
    repeats = await repeated(once, like(judgement), first=False)
    str(repeats)        "FLAKY 3/5 (14 %-95 %)"
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

import msgspec

from chaoskit.explore.statistics import Repeats
from chaoskit.model.findings import Finding, Judgement
from chaoskit.model.history import History

REPEATS = 5
"""How often a trial is repeated. Five that agree leave a rate above 54 %, or below 46 %."""


class Likeness(NamedTuple):
    """What makes two findings the same one although their points, and so their subjects, differ.

    ``root``: no other finding of the trial brought it about.
    """

    kind: str
    operation: str
    missing: str
    root: bool

    @classmethod
    def of(cls, finding: Finding) -> Likeness:
        """The likeness of ``finding``."""
        missing = finding.diagnosis.missing if finding.diagnosis is not None else ""
        return cls(finding.kind, finding.operation, missing, not finding.cause)


def in_a_resume(finding: Finding, history: History) -> bool:
    """Whether it took a resume to show a finding: the last attempt of its witnesses is not the
    first one. Where no witness tells, what counts is whether the trial had a resume.
    """
    bodies = [history.events[index].body for index in finding.witness]
    of_witnesses = max((int(getattr(body, "attempt", 0)) for body in bodies), default=0)
    return (of_witnesses or len(history.attempts)) > 1


class Sought(NamedTuple):
    """The same finding in a smaller trial: as `Likeness` says, and a resume keeps its part in it.

    What an attempt did that was resumed is not shown by a first attempt that does the like, however
    the schedules of the two trials differ.
    """

    likeness: Likeness
    resumed: bool

    @classmethod
    def of(cls, finding: Finding, history: History) -> Sought:
        """What is looked for, from the trial that shows it."""
        return cls(Likeness.of(finding), in_a_resume(finding, history))

    def among(self, judgement: Judgement, history: History) -> Finding | None:
        """The finding in another trial; None where that does not show it."""
        found = (f for f in judgement.findings if Sought.of(f, history) == self)
        return next(found, None)


Shows = Callable[[Judgement], Finding | None]
"""Finds in a judgement the finding that is looked for."""


def like(*findings: Finding) -> Shows:
    """Looks for one that is the same as any of ``findings``."""
    wanted = {Likeness.of(finding) for finding in findings}

    def shows(judgement: Judgement) -> Finding | None:
        return next((f for f in judgement.findings if Likeness.of(f) in wanted), None)

    return shows


def named(fingerprint: str) -> Shows:
    """Looks for the one with this fingerprint."""

    def shows(judgement: Judgement) -> Finding | None:
        return next((f for f in judgement.findings if f.fingerprint == fingerprint), None)

    return shows


class Repeated(msgspec.Struct, frozen=True):
    """``shown`` of ``times`` repeats showed a finding; ``first``: so did the trial before them."""

    first: bool
    shown: int
    times: int

    @property
    def steady(self) -> bool:
        """Whether all of them and the trial before them agree."""
        return self.shown == (self.times if self.first else 0)

    @property
    def interval(self) -> tuple[float, float]:
        """The rates that the repeats leave possible, with a confidence of 95 %."""
        return Repeats(self.shown, self.times).interval

    def __str__(self) -> str:
        text = str(Repeats(self.shown, self.times))
        return text if self.steady else text.replace("STEADY", "FLAKY")


def summed(answers: Iterable[bool], *, first: bool) -> Repeated:
    """What repeats say that are over: whether each of them showed the finding."""
    said = list(answers)
    return Repeated(first, sum(said), len(said))


async def repeated(
    once: Callable[[], Awaitable[Judgement]],
    shows: Shows,
    *,
    first: bool,
    times: int = REPEATS,
) -> Repeated:
    """Run a trial ``times`` more times.

    Args:
        once: runs it once, by real kills, and judges it.
        shows: the finding that is looked for: `like` or `named`.
        first: whether the trial that called for the repeats showed it.
        times: how often.
    """
    return summed([shows(await once()) is not None for _ in range(times)], first=first)
