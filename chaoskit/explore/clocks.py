"""Clock faults: whose clocks one advanced, where the task's own could not be."""

from __future__ import annotations

from chaoskit.explore.plan import noted
from chaoskit.model.history import History
from chaoskit.trace import UNMOVED

SERVICES_ONLY = "only the services' clocks and probe.now() advanced"


def unmoved(history: History, after_s: int = 0) -> str:
    """What a clock fault did not advance of the task's own clock, in words; empty: nothing.

    Args:
        history: of the trial.
        after_s: by how much all clocks advance after each kill.
    """
    if not after_s and not any(body.fault.startswith("clock:") for _, body in history.landed):
        return ""
    programs = noted([history], UNMOVED)
    if not programs:
        return ""
    if "" in programs:  # none of them
        return SERVICES_ONLY
    return f"the clock of {', '.join(programs)} did not advance"


def concerning(operation: str, clocks: str) -> str:
    """A finding's operation, and what `unmoved` says of its trial: for its first line."""
    return f"{operation}, {clocks}" if clocks else operation
