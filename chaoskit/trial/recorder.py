"""The recorder: one counter numbers everything that is seen in a trial."""

from __future__ import annotations

import time
from dataclasses import dataclass

from chaoskit.model.events import Body, Event
from chaoskit.model.history import History

EVENTS_MAX = 200_000
"""A trial that reports more is cut off: a task in a loop must not fill the memory."""


@dataclass(frozen=True, slots=True)
class Log:
    """A position in the events of a trial: the first ``length`` of ``events``, which only grow."""

    events: list[Event]
    length: int

    def so_far(self) -> list[Event]:
        """The events up to this position."""
        return self.events[: self.length]

    @property
    def at_us(self) -> int:
        """When the last of them was seen, in microseconds of the trial."""
        return self.events[self.length - 1].at_us if self.length else 0


class Recorder:
    """Collects the events of one trial in order, after those that came ``before``."""

    def __init__(self, before: Log | None = None) -> None:
        self._events = before.so_far() if before is not None else []
        self._began = time.monotonic() - (before.at_us / 1e6 if before is not None else 0)

    def add(self, body: Body) -> None:
        """Append what was just seen."""
        if len(self._events) < EVENTS_MAX:
            now_us = int((time.monotonic() - self._began) * 1e6)
            self._events.append(Event(len(self._events), now_us, body))

    @property
    def position(self) -> Log:
        """Where the trial stands now."""
        return Log(self._events, len(self._events))

    def history(self) -> History:
        """Everything so far, as an immutable value."""
        return History(tuple(self._events))
