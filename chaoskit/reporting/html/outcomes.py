"""What a trial came to, as one word: the same word colours a point and heads a trial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from chaoskit.campaign.repeating import Repeated
from chaoskit.campaign.store import StoredTrial
from chaoskit.reporting.summary import missed_by_time

NOT_TRIED, VALID, UNKNOWN, FLAKY, INVALID = range(5)
"""From the best to the worst thing that can be said of a point; `assets/words.js` has them too."""


def outcome(trial: StoredTrial, repeats: Mapping[str, Repeated]) -> int:
    """The outcome of a trial; one that came after the task's end tried nothing."""
    repeated = repeats.get(trial.schedule)
    if repeated is not None and not repeated.steady:
        return FLAKY
    if missed_by_time(trial):
        return NOT_TRIED
    return {"VALID": VALID, "INVALID": INVALID}.get(trial.judgement.verdict, UNKNOWN)


def worst(outcomes: Iterable[int]) -> int:
    """The worst of several; NOT_TRIED of none."""
    return max(outcomes, default=NOT_TRIED)
