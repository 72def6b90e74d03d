"""Replay: one trial again, and whether it still shows what it showed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from chaoskit.campaign.jobs import Job, Session, checked, trial_timeout_s
from chaoskit.checkers.check import judge
from chaoskit.explore.survey import expect
from chaoskit.model.findings import Finding, Judgement
from chaoskit.model.history import History
from chaoskit.model.schedule import parse_schedule
from chaoskit.model.token import ReplayToken
from chaoskit.trial.loading import load

Outcome = Literal["REPRODUCED", "FIXED", "CHANGED", "UNKNOWN"]

MEANING: dict[Outcome, tuple[int, str]] = {
    "REPRODUCED": (1, "the same finding"),
    "FIXED": (0, "the kill landed at the same point, and nothing is wrong any more"),
    "CHANGED": (1, "the finding is gone, and there is another one"),
    "UNKNOWN": (4, "this proves nothing"),
}
"""Exit code and meaning of each outcome."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a replay."""

    outcome: Outcome
    judgement: Judgement
    reasons: tuple[str, ...]
    history: History

    @property
    def finding(self) -> Finding | None:
        """The finding to show."""
        roots = self.judgement.roots
        return roots[0] if roots else None


def replay(token: ReplayToken, work_root: str = "") -> Replayed:
    """Survey the target again and run the token's one trial.

    Raises:
        UsageError: the target is not there, or cannot be run.
        HarnessError: chaoskit itself failed.
    """
    session = Session()
    try:
        scenario = load(token.target).scenario
        job = Job(target=token.target, seed=token.seed, work_root=work_root)
        first, second = (History.decode(r.history) for r in checked(session.perform(job)).results)
        expectation = expect(first, second, scenario)
        schedule = parse_schedule(token.schedule)
        timeout_s = scenario.timeout_s or trial_timeout_s(expectation)
        trial = msgspec.structs.replace(job, schedules=(str(schedule),), timeout_s=timeout_s)
        (result,) = checked(session.perform(trial)).results
        history = History.decode(result.history)
    finally:
        session.close()
    judgement = judge(history, expectation, schedule)
    reasons = (*expectation.problems, *judgement.unknowns)
    return Replayed(_outcome(token, judgement, reasons), judgement, reasons, history)


def _outcome(token: ReplayToken, judgement: Judgement, reasons: tuple[str, ...]) -> Outcome:
    prints = {finding.fingerprint for finding in judgement.findings}
    if token.fingerprint in prints:
        return "REPRODUCED"
    if judgement.findings:
        return "CHANGED"
    return "UNKNOWN" if reasons else "FIXED"
