"""How many random moments it takes until one fell into every crash state: pure arithmetic."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean

from chaoskit.model.events import AttemptEnded, AttemptStarted, CallSeen
from chaoskit.model.history import History

ROUNDS = 400


def stays(history: History, worlds: Mapping[str, str]) -> dict[str, float]:
    """For how many microseconds the first attempt stays in each crash state.

    A window between two calls is the state before the second of them. Windows with the same
    durable state (``worlds``: by schedule) count as one, so that a timer may hit any of them; a
    window of which the state is not known is one of its own.
    """
    found: defaultdict[str, float] = defaultdict(float)
    since, last = 0, ""
    for event in history.events:
        body = event.body
        if getattr(body, "attempt", 1) != 1:
            continue
        if isinstance(body, AttemptStarted):
            since = event.at_us
        elif isinstance(body, CallSeen):
            last = f"kill@{body.call}"
            found[worlds.get(last) or last] += event.at_us - since
            since = event.at_us
        elif isinstance(body, AttemptEnded):
            after = f"{last}+after"
            found[worlds.get(after) or after] += event.at_us - since
    return {state: us for state, us in found.items() if us > 0}


def expected_trials(lengths: Sequence[float], share: float, seed: int = 0) -> float:
    """The expected number of random moments until ``share`` of the windows were hit.

    Moments that come at random, one each unit of time on average, first hit a window with the
    part p of the whole after an exponential time with mean 1/p, independently of the other
    windows; and after a time t the expected number of moments is t. So one round draws a time for
    each window and takes the one at which enough of them were hit.
    """
    whole = sum(lengths)
    enough = math.ceil(share * len(lengths))
    chance = random.Random(f"timers {seed}")
    return fmean(
        sorted(chance.expovariate(length / whole) for length in lengths)[enough - 1]
        for _ in range(ROUNDS)
    )
