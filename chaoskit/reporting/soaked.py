"""What a soak proves, in numbers and in a sentence that claims no more than they do."""

from __future__ import annotations

import math
from collections import Counter

import msgspec

from chaoskit.campaign.options import Options
from chaoskit.campaign.soaking import DRAWN_FROM, NOTHING, verdicts
from chaoskit.campaign.store import SOAKED_S, Store
from chaoskit.explore.statistics import CONFIDENCE, interval, upper_bound
from chaoskit.model.points import TimePoint
from chaoskit.model.schedule import Schedule, parse_schedule


class SoakReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a soak came to. Part of the JSON report.

    Args:
        asked_s: for how long it was to go on.
        seconds: for how long it went on, interruptions left out.
        seed: decides which schedules were drawn, and in which order.
        kills_max: the most attempts of a trial that suffer a fault.
        trials: judged ones in which a fault landed; ``failures`` of them have a finding.
        shorter: of these, trials of which a later fault found nothing left to hit: they were judged
            as the schedule that did land.
        missed: drawn ones in which no fault landed at all; not counted as trials.
        unjudged: ones that prove nothing for another reason; not counted either.
        rate_min: the lowest rate of failures that is still possible.
        rate_max: the highest one; after no failure it is a bound from this side alone.
        confidence: of the bound or the interval.
        points: how many different exact points were hit.
        points_total: how many there were to draw.
        faults_besides: how many other faults there were to draw (late landings, kills of the first
            process alone, losses of power); random moments come on top of them.
        sentence: the result in words.
    """

    asked_s: float
    seconds: float
    seed: int
    kills_max: int
    trials: int
    failures: int
    shorter: int
    missed: int
    unjudged: int
    rate_min: float
    rate_max: float
    confidence: float
    points: int
    points_total: int
    faults_besides: int
    sentence: str


def soak_report(store: Store, options: Options) -> SoakReport | None:
    """The report of a campaign that soaks; None for any other."""
    if options.soak_s is None:
        return None
    judged = verdicts(store)
    hit = [(row, verdict) for row, verdict in judged if row.schedule != NOTHING]
    counts = Counter(verdict for _, verdict in hit)
    trials, failures = counts["VALID"] + counts["INVALID"], counts["INVALID"]
    low, high = interval(failures, trials) if failures else (0.0, upper_bound(0, trials))
    schedules = [parse_schedule(text) for text in {row.schedule for row, _ in hit}]
    return SoakReport(
        asked_s=options.soak_s,
        seconds=float(store.get(SOAKED_S) or 0),
        seed=options.seed,
        kills_max=options.depth,
        trials=trials,
        failures=failures,
        shorter=sum(row.schedule != row.drawn for row, _ in hit),
        missed=len(judged) - len(hit),
        unjudged=counts["UNKNOWN"],
        rate_min=low,
        rate_max=high,
        confidence=CONFIDENCE,
        points=_points_hit(schedules),
        points_total=int(store.get("points.total") or 0),
        faults_besides=int(store.get(DRAWN_FROM) or 0),
        sentence=_sentence(failures, trials, low, high),
    )


def drawn(soak: SoakReport) -> str:
    """What the schedules of a soak were drawn from, and what became of them."""
    faults = "1 fault" if soak.kills_max == 1 else f"1 to {soak.kills_max} faults"
    besides = f", {soak.faults_besides} other faults" if soak.faults_besides else ""
    return (
        f"by seed {soak.seed}, {faults} a trial, from {soak.points_total} points{besides} and "
        f"random moments; {soak.shorter} trials were judged as the shorter schedule that landed, "
        f"{soak.missed} in which nothing landed are not counted"
    )


def _points_hit(schedules: list[Schedule]) -> int:
    faults = {fault for schedule in schedules for at in schedule.attempts for fault in at}
    exact = {f for f in faults if not f.is_prelude and not isinstance(f.point, TimePoint)}
    return len({fault.point for fault in exact})


def _sentence(failures: int, trials: int, low: float, high: float) -> str:
    if not trials:
        return "no trial in which a fault landed: this says nothing of how many would fail"
    found = f"{failures} of {trials} trials failed"
    sure = f"with {CONFIDENCE * 100:g} % confidence"
    if not failures:
        return f"{found}: {sure}, at most {_up(high)} of schedules drawn like these fail"
    return f"{found}: {sure}, {_down(low)} to {_up(high)} of schedules drawn like these fail"


def _up(rate: float) -> str:
    """A bound is rounded outwards, so that it still holds what the exact one does."""
    return f"{math.ceil(rate * 10_000) / 100:g} %"


def _down(rate: float) -> str:
    return f"{math.floor(rate * 10_000) / 100:g} %"
