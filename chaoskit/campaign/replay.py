"""Replay: one trial again, and whether it still shows what it showed."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from typing import Literal

from chaoskit.campaign.bench import Bench, Tried
from chaoskit.campaign.events import Finished
from chaoskit.campaign.mechanisms import best
from chaoskit.campaign.options import Options
from chaoskit.campaign.repeating import REPEATS, Repeated, named, summed
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.explore.plan import Mechanism
from chaoskit.model.actions import LATE, POWER, Kill, KillLeader
from chaoskit.model.errors import UsageError
from chaoskit.model.findings import Finding, Judgement
from chaoskit.model.history import History
from chaoskit.model.points import CallPoint
from chaoskit.model.schedule import Action, parse_schedule
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

_SWEPT: frozenset[Action] = frozenset({Kill(), KillLeader(), *LATE.values(), *POWER})
"""What a campaign tries at every point."""


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


def recheck(token: ReplayToken, work_root: str = "") -> Replayed:
    """Replay a trial whose finding is to be fixed. A fixed task may not come to its point any more:
    then every point that it does come to is tried instead, and FIXED means that none of these shows
    anything.

    Args:
        token: what to run.
        work_root: where work folders are made.

    Raises:
        UsageError: the target is not there, or cannot be run.
        HarnessError: chaoskit itself failed.
    """
    replayed = replay(token, work_root)
    schedule = parse_schedule(token.schedule)
    faults = [fault for attempt in schedule.attempts for fault in attempt]
    actions = {fault.action for fault in faults}
    gone = len(replayed.history.landed) < schedule.faults
    traced = "calls" in best() or not any(isinstance(f.point, CallPoint) for f in faults)
    if replayed.outcome != "UNKNOWN" or not (gone and traced and actions <= _SWEPT):
        return replayed
    with tempfile.TemporaryDirectory(prefix="chaoskit-") as runs:
        options = Options(
            target=token.target,
            seed=token.seed,
            mechanisms=best(),
            in_flight=tuple(w for w, late in LATE.items() if late in actions or w == "late:1"),
            power_loss=schedule.loses_power,
            kill="both" if KillLeader() in actions else "tree",
            depth=len(schedule.attempts),
            runs=runs,
            work_root=work_root,
        )
        try:
            (folder,) = (e.folder for e in run(options) if isinstance(e, Finished))
        except UsageError as error:
            return replace(replayed, reasons=(*replayed.reasons, str(error)))
        with Store(folder) as store:
            return _swept(token, store, replayed)


def _swept(token: ReplayToken, store: Store, replayed: Replayed) -> Replayed:
    """What a campaign says in place of a trial whose point has gone."""
    surveyed = store.survey()
    trials = list(store.trials())
    problems = surveyed[2].problems if surveyed is not None else ("there was no survey",)
    for trial in trials:
        if trial.judgement.roots:
            same = named(token.fingerprint)(trial.judgement) is not None
            outcome: Outcome = "REPRODUCED" if same else "CHANGED"
            history = store.history(trial.schedule)
            reasons = (*problems, f"shown by {trial.schedule}")
            return Replayed(outcome, trial.judgement, reasons, history)
    unknowns = [why for trial in trials for why in trial.judgement.unknowns]
    tried = [trial for trial in trials if trial.wave and trial.landed]
    if problems or unknowns or not tried:
        return replace(replayed, reasons=(*replayed.reasons, *problems, *unknowns))
    return replace(replayed, outcome="FIXED", reasons=(f"{len(tried)} trials at other points",))


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
