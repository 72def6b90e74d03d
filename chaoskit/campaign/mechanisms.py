"""Which mechanisms a campaign uses where nobody said."""

from __future__ import annotations

from functools import lru_cache

from chaoskit.explore.plan import Mechanism
from chaoskit.trial.ladder import Rung, tracing

BEST: tuple[Mechanism, ...] = ("calls", "windows")
PORTABLE: tuple[Mechanism, ...] = ("windows", "crossings", "lines")


@lru_cache(maxsize=1)
def traced() -> Rung:
    """Whether system calls can be traced here; tried out once in a process."""
    return tracing()


def best() -> tuple[Mechanism, ...]:
    """System calls and service windows where that works, what works everywhere elsewhere."""
    return BEST if traced().works else PORTABLE
