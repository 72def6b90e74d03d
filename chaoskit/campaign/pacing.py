"""What the trials of a soak cost, so that its time can be shared between them and their repeats.

The time that went by is divided among the trials that are over, each by how long its answer took;
so it does not matter how many run at once. One that has to be given up costs more than others.
"""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]

REPEATS_SHARE_MOST = 0.5
"""Which part of a soak's time is kept for repeats at most: more trials find more than repeats."""


class Pace:
    """Measures trials: each is `begun`, and `ended` once.

    Args:
        clock: tells the seconds.
        guess_s: what a trial costs as long as none is over.
    """

    def __init__(self, clock: Clock = time.monotonic, guess_s: float = 0.0) -> None:
        self._clock = clock
        self._guess_s = guess_s
        self._since = clock()
        self._until = self._since
        self._waited_s = 0.0
        self._running = 0
        self._over = 0

    def begun(self) -> float:
        """A trial is handed out now: the moment, which `ended` wants to know."""
        self._running += 1
        return self._clock()

    def ended(self, began: float) -> float:
        """A trial is over now; how many seconds of the soak it took up."""
        self._running -= 1
        self._over += 1
        self._until = self._clock()
        waited_s = self._until - began
        self._waited_s += waited_s
        return waited_s * self._spent_s / self._waited_s if self._waited_s else 0.0

    @property
    def _spent_s(self) -> float:
        return self._until - self._since

    @property
    def mean_s(self) -> float:
        """What a trial costs."""
        return self._spent_s / self._over if self._over else self._guess_s

    @property
    def under_way_s(self) -> float:
        """How long those that are handed out will take."""
        return self._running * self.mean_s


class Reserve:
    """The time that repeats of failed schedules will take.

    Args:
        pace: of the trials.
        whole_s: the time of the whole soak.
        most: of how many schedules.
        times: how often each is repeated.
    """

    def __init__(self, pace: Pace, whole_s: float, most: int, times: int) -> None:
        self._pace = pace
        self._most_s = REPEATS_SHARE_MOST * whole_s
        self._most = most
        self._times = times
        self._cost_s: dict[str, float | None] = {}

    def failed(self, schedule: str, cost_s: float | None = None) -> None:
        """A schedule failed; ``cost_s``: what its trial cost, where that was measured."""
        self._cost_s[schedule] = cost_s

    @property
    def seconds(self) -> float:
        """What is to be kept for them: of the dearest ones, as it is not known which are taken."""
        mean_s = self._pace.mean_s
        costs = [mean_s if cost is None else cost for cost in self._cost_s.values()]
        dearest = sorted(costs, reverse=True)[: self._most]
        return min(self._times * sum(dearest), self._most_s)
