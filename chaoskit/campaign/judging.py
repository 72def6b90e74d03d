"""Stored trials, judged again."""

from __future__ import annotations

import msgspec

from chaoskit.campaign.store import Store
from chaoskit.campaign.trials import DOUBT
from chaoskit.checkers.check import judge
from chaoskit.model.schedule import parse_schedule


def judge_again(store: Store) -> list[tuple[str, str, str]]:
    """Ask today's checkers about every stored trial, against the stored expectation.

    Returns:
        For each changed trial its schedule, its verdict before, and its verdict now.
    """
    survey = store.survey()
    changed: list[tuple[str, str, str]] = []
    for trial in list(store.trials()) if survey is not None else []:
        assert survey is not None
        schedule = parse_schedule(trial.schedule)
        fresh = judge(store.history(trial.schedule), survey[2], schedule)
        doubts = tuple(u for u in trial.judgement.unknowns if u.startswith(DOUBT))
        if doubts:
            verdict = "INVALID" if fresh.findings else "UNKNOWN"
            unknowns = (*fresh.unknowns, *doubts)
            fresh = msgspec.structs.replace(fresh, verdict=verdict, unknowns=unknowns)
        if fresh != trial.judgement:
            store.put_judgement(trial.schedule, fresh)
            changed.append((trial.schedule, trial.judgement.verdict, fresh.verdict))
    return changed
