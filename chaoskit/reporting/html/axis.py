"""The undisturbed run as a line from left to right: where on it each point lies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from chaoskit.explore.plan import window_of
from chaoskit.model.events import (
    Body,
    CallSeen,
    Crossed,
    EffectApplied,
    Event,
    ReplySent,
    RequestReceived,
    StepReported,
)
from chaoskit.model.history import History
from chaoskit.model.points import CallPoint, CrossingPoint, Point, TimePoint

SHOWN = (CallSeen, RequestReceived, EffectApplied, ReplySent, Crossed, StepReported)
"""The events that have a place on the line, one unit each."""

_WITHIN = {"before": 0.0, "short": 0.5, "after": 0.9}
"""Where in its unit a side of a call lies; what the call sends follows it in units of their own."""

_MOMENT = 0.5
"""Where in its unit a window or a crossing lies."""


class Axis:
    """The line: ``events`` in order, and the place of a point in units of one event."""

    def __init__(self, survey: History | None) -> None:
        first = survey.events if survey is not None else ()
        self.events: list[Event] = [
            event for event in first if isinstance(event.body, SHOWN) and event.body.attempt == 1
        ]
        self._began = first[0].at_us if first else 0
        self._places: dict[str, float] = {}
        self._requests: dict[int, RequestReceived] = {}
        for unit, event in enumerate(self.events):
            for name, within in self._names(event.body):
                self._places[name] = unit + within

    @property
    def length(self) -> int:
        """How many units there are, at least one."""
        return max(1, len(self.events))

    def _names(self, body: Body) -> Iterator[tuple[str, float]]:
        """The points that this event is, each with its place in the event's unit."""
        if isinstance(body, CallSeen):
            yield body.call, 0.0
        elif isinstance(body, Crossed):
            yield str(CrossingPoint(body.name, body.ordinal)), _MOMENT
        elif isinstance(body, RequestReceived):
            self._requests[body.request] = body
            yield str(window_of(body, "received")), _MOMENT
            yield str(window_of(body, "applied")), 0.8
        elif isinstance(body, EffectApplied) and body.request in self._requests:
            yield str(window_of(self._requests[body.request], "applied")), _MOMENT
        elif isinstance(body, ReplySent) and body.request in self._requests:
            yield str(window_of(self._requests[body.request], "answered")), _MOMENT

    def place(self, point: Point) -> float | None:
        """Where ``point`` lies, in units from the left; None if the run does not pass it."""
        if isinstance(point, TimePoint):
            return self._at(self._began + point.delay_ms * 1000)
        if isinstance(point, CallPoint):
            base = self._places.get(str(replace(point, side="before", bytes=0)))
            if base is None:
                return None
            if point.side == "after":
                return self._after(int(base))
            return base + _WITHIN[point.side]
        return self._places.get(str(point))

    def _after(self, unit: int) -> float:
        """After the call at ``unit``; what it sent has landed by then."""
        call = self.events[unit].body
        last = unit
        if isinstance(call, CallSeen) and call.sends:
            while last + 1 < len(self.events) and isinstance(
                self.events[last + 1].body, RequestReceived | EffectApplied | ReplySent
            ):
                last += 1
        return last + _WITHIN["after"]

    def _at(self, at_us: int) -> float:
        """Where the line is at a time, between the events before and after it."""
        for unit, event in enumerate(self.events):
            if event.at_us >= at_us:
                return float(unit)
        return float(self.length)
