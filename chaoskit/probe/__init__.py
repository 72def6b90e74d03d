"""Floor 1: what a task may call to show where it is. Standard library only; free when not watched.

    from chaoskit import probe
    probe.point("charge.done")      # a crossing: a place where chaoskit may kill

Outside a trial every call returns at once and does nothing.
"""

from __future__ import annotations

from chaoskit.probe.channel import point, refused, step, unknown_outcome, watched
from chaoskit.probe.clock import now

__all__ = ["now", "point", "refused", "step", "unknown_outcome", "watched"]
