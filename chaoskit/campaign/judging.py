"""How a campaign judges its trials, and stored ones again."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import msgspec

from chaoskit.campaign.baselines import loose_of, loose_point
from chaoskit.campaign.options import Options
from chaoskit.campaign.store import Store
from chaoskit.campaign.trials import DOUBT
from chaoskit.checkers.check import judge
from chaoskit.explore.landed import found_nothing, part_that_landed
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Judgement
from chaoskit.model.history import History
from chaoskit.model.points import Point
from chaoskit.model.schedule import Schedule, parse_schedule


def judged(
    history: History,
    expectation: Expectation,
    schedule: Schedule,
    options: Options,
    loose: AbstractSet[Point] = frozenset(),
) -> Judgement:
    """The judgement of a trial; of one that a campaign drew as far as it could be done.

    Where a damage was drawn for a moment at which there is no file yet, or a change for one before
    its step, or a point that only some baselines passed did not come, the trial is one of the
    faults that did land. What somebody asked for by name proves nothing then.

    Args:
        history: of the trial.
        expectation: of the campaign.
        schedule: of the trial.
        options: of the campaign.
        loose: the points that only some baselines passed.
    """
    idle = found_nothing(history, schedule)
    drawn = idle and idle <= {"change", *options.faults}
    missed = not history.landed and loose_point(schedule, loose) is not None
    if (drawn or missed) and not options.only:
        schedule = part_that_landed(history, schedule)
    return judge(history, expectation, schedule)


def judge_again(store: Store) -> list[tuple[str, str, str]]:
    """Ask today's checkers about every stored trial, against the stored expectation.

    Returns:
        For each changed trial its schedule, its verdict before, and its verdict now.
    """
    survey = store.survey()
    options = msgspec.json.decode(store.get("options") or "", type=Options)
    loose = set(loose_of(store))
    changed: list[tuple[str, str, str]] = []
    for trial in list(store.trials()) if survey is not None else []:
        assert survey is not None
        schedule = parse_schedule(trial.schedule)
        fresh = judged(store.history(trial.schedule), survey[2], schedule, options, loose)
        doubts = tuple(u for u in trial.judgement.unknowns if u.startswith(DOUBT))
        if doubts:
            verdict = "INVALID" if fresh.findings else "UNKNOWN"
            unknowns = (*fresh.unknowns, *doubts)
            fresh = msgspec.structs.replace(fresh, verdict=verdict, unknowns=unknowns)
        if fresh != trial.judgement:
            store.put_judgement(trial.schedule, fresh)
            changed.append((trial.schedule, trial.judgement.verdict, fresh.verdict))
    return changed
