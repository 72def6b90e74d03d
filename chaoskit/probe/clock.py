"""The time of day as a task sees it, which a trial can move.

An idempotency key that a service remembers for a day, a token that expires: whether a resume a week
later is right cannot be waited for. A trial moves the clock of the task instead.
"""

from __future__ import annotations

import os
import time

SHIFT_VARIABLE = "CHAOSKIT_CLOCK_SHIFT_S"
MOVED_VARIABLE = "FAKETIME"
"""Set where libfaketime has moved this program's clock by that much already."""


def now() -> float:
    """Seconds since the epoch, plus what the environment variable ``CHAOSKIT_CLOCK_SHIFT_S`` says;
    where libfaketime has moved the clock itself, that is not added once more.

    Raises:
        ValueError: the variable is set, and is not a number of seconds.
    """
    shift = os.environ.get(SHIFT_VARIABLE)
    if not shift or os.environ.get(MOVED_VARIABLE):
        return time.time()
    try:
        return time.time() + float(shift)
    except ValueError as error:
        raise ValueError(f"{SHIFT_VARIABLE} is a number of seconds, not {shift!r}") from error
