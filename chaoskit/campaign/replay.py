"""Replay: one trial again, and whether it still shows what it showed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chaoskit.campaign.bench import Bench, Tried
from chaoskit.campaign.repeating import REPEATS, Repeated, named, summed
from chaoskit.explore.plan import Mechanism
from chaoskit.model.findings import Finding, Judgement
from chaoskit.model.history import History
from chaoskit.model.schedule import parse_schedule
from chaoskit.model.token import ReplayToken

Outcome = Literal["REPRODUCED", "FLAKY", "FIXED", "CHANGED", "UNKNOWN"]

MEANING: dict[Outcome, tuple[int, str]] = {
    "REPRODUCED": (1, "the same finding"),
    "FLAKY": (1, "not in this trial, but the same finding in repeats of it"),
    "FIXED": (0, "the kill landed at the same point, and nothing is wrong any more"),
    "CHANGED": (1, "the finding is gone, and there is another one"),
    "UNKNOWN": (4, "this proves nothing"),
}
"""Exit code and meaning of each outcome."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a replay: of its last trial, or of the last repeat that showed the finding."""

    outcome: Outcome
    judgement: Judgement
    reasons: tuple[str, ...]
    history: History
    repeats: Repeated | None = None

    @property
    def finding(self) -> Finding | None:
        """The finding to show."""
        roots = self.judgement.roots
        return roots[0] if roots else None

    @property
    def sentence(self) -> str:
        """The outcome with what it rests on, for the message of a failing test."""
        found = [
            f"{one.kind} of {one.operation}: expected {one.expected}; seen {one.seen}, "
            f"because {one.because}"
            for one in self.judgement.roots
        ]
        said = str(self.repeats) if self.outcome == "FLAKY" else self.outcome
        return "; ".join([f"{said}, {MEANING[self.outcome][1]}", *found, *self.reasons])


def replay(token: ReplayToken, work_root: str = "", *, repeats: int = REPEATS) -> Replayed:
    """Survey the target again and run the token's one trial; repeat it if it shows something else.

    Args:
        token: what to run.
        work_root: where work folders are made.
        repeats: how often a trial that does not show the token's finding is repeated.

    Raises:
        UsageError: the target is not there, or cannot be run.
        HarnessError: chaoskit itself failed.
    """
    schedule = parse_schedule(token.schedule)
    shows = named(token.fingerprint)
    after_s = token.resume_after_s
    # Which names vary is learnt from calls.
    varies: tuple[Mechanism, ...] = ("calls",) if "*" in token.schedule else ()
    with Bench(token.target, token.seed, work_root, varies, resume_after_s=after_s) as bench:
        problems = bench.survey(token.take).expectation.problems
        tried = bench.trial(schedule, token.take)
        outcome = _outcome(token, tried, problems)
        if outcome == "REPRODUCED" or problems or not repeats:
            return _replayed(outcome, tried, problems)
        again = [bench.trial(schedule, token.take) for _ in range(repeats)]
    showing = [other for other in again if shows(other.judgement) is not None]
    rate = summed([other in showing for other in again], first=False)
    if showing:
        return _replayed("FLAKY", showing[-1], problems, rate)
    for other in (tried, *again):
        if _outcome(token, other, problems) == "CHANGED":
            return _replayed("CHANGED", other, problems, rate)
    return _replayed(outcome, tried, problems, rate)


def _replayed(
    outcome: Outcome, tried: Tried, problems: tuple[str, ...], repeats: Repeated | None = None
) -> Replayed:
    reasons = (*problems, *tried.judgement.unknowns)
    return Replayed(outcome, tried.judgement, reasons, tried.history, repeats)


def _outcome(token: ReplayToken, tried: Tried, problems: tuple[str, ...]) -> Outcome:
    if named(token.fingerprint)(tried.judgement) is not None:
        return "REPRODUCED"
    if problems or not tried.landed:  # what else is seen then is not the token's trial
        return "UNKNOWN"
    if tried.judgement.findings:
        return "CHANGED"
    return "UNKNOWN" if tried.judgement.unknowns else "FIXED"
