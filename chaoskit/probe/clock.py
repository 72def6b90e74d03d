"""The time of day as a task sees it, which a trial can move.

An idempotency key that a service remembers for a day, a token that expires: whether a resume a week
later is right cannot be waited for. A trial moves the clock of the task instead.
"""

from __future__ import annotations

import os
import time

SHIFT_VARIABLE = "CHAOSKIT_CLOCK_SHIFT_S"
"""Set where a trial moves clocks, and cannot move this program's own."""


def now() -> float:
    """Seconds since the epoch, plus what the environment variable ``CHAOSKIT_CLOCK_SHIFT_S`` says.

    A trial sets it only where it cannot move the program's own clock.

    Raises:
        ValueError: the variable is set, and is not a number of seconds.
    """
    shift = os.environ.get(SHIFT_VARIABLE)
    if not shift:
        return time.time()
    try:
        return time.time() + float(shift)
    except ValueError as error:
        raise ValueError(f"{SHIFT_VARIABLE} is a number of seconds, not {shift!r}") from error
