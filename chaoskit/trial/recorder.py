"""The recorder: one counter numbers everything that is seen in a trial."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass

from chaoskit.model.events import (
    AttemptEnded,
    AttemptStarted,
    Body,
    CallSeen,
    Crossed,
    EffectApplied,
    EndStated,
    Event,
    EventsLeftOut,
    FaultLanded,
    RecordsFound,
    RequestReceived,
    StateObserved,
    StepReported,
)
from chaoskit.model.history import History

EVENTS_MAX = 200_000
"""Of a trial that reports more the rest is left out: a task in a loop must not fill the memory."""

_ALWAYS = (AttemptStarted, AttemptEnded, EndStated, FaultLanded, RecordsFound, StateObserved)
"""What is kept beyond that: a few for each attempt, by which a trial is known to be over."""


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
        self._full = any(isinstance(event.body, EventsLeftOut) for event in self._events)

    def add(self, body: Body) -> None:
        """Append what was just seen; of too much, that it was too much."""
        if len(self._events) < EVENTS_MAX or isinstance(body, _ALWAYS):
            self._append(body)
        elif not self._full:
            self._full = True
            sorts = Counter(filter(None, map(_sort, self._events)))
            what, most = max(sorts.items(), key=lambda item: item[1], default=("others", 0))
            self._append(
                EventsLeftOut(
                    attempt=getattr(body, "attempt", 0), limit=EVENTS_MAX, what=what, most=most
                )
            )

    def _append(self, body: Body) -> None:
        now_us = int((time.monotonic() - self._began) * 1e6)
        self._events.append(Event(len(self._events), now_us, body))

    @property
    def position(self) -> Log:
        """Where the trial stands now."""
        return Log(self._events, len(self._events))

    def history(self) -> History:
        """Everything so far, as an immutable value."""
        return History(tuple(self._events))


def _sort(event: Event) -> str:
    """What an event is of, without its number: a point's name, an operation, or a step; empty for
    what only follows from another one.
    """
    body = event.body
    if isinstance(body, CallSeen):
        return f"calls {body.call.partition('#')[0]}"
    if isinstance(body, Crossed):
        return f"crossings {body.name}"
    if isinstance(body, RequestReceived):
        return f"requests {body.service}.{body.operation}"
    if isinstance(body, EffectApplied):
        return f"effects {body.effect.operation}"
    return f"steps {body.step}" if isinstance(body, StepReported) else ""
