"""The recorder: one counter numbers everything that is seen in a trial."""

from __future__ import annotations

import time
from collections.abc import Sequence

from chaoskit.model.events import Body, Event
from chaoskit.model.history import History

EVENTS_MAX = 200_000
"""A trial that reports more is cut off: a task in a loop must not fill the memory."""


class Recorder:
    """Collects the events of one trial in order, after those that came ``before``."""

    def __init__(self, before: Sequence[Event] = ()) -> None:
        self._events = list(before)
        self._began = time.monotonic() - (before[-1].at_us / 1e6 if before else 0)

    def add(self, body: Body) -> None:
        """Append what was just seen."""
        if len(self._events) < EVENTS_MAX:
            now_us = int((time.monotonic() - self._began) * 1e6)
            self._events.append(Event(len(self._events), now_us, body))

    @property
    def full(self) -> bool:
        """Whether events were left out."""
        return len(self._events) >= EVENTS_MAX

    def history(self) -> History:
        """Everything so far, as an immutable value."""
        return History(tuple(self._events))
