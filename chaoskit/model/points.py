"""Points: the places where a fault may land, and their text form.

    payments.charge#23.applied   a service window: the 23rd such request of an attempt
    charge.done#3                a crossing: the third time the code passed it in an attempt
    250ms                        a time after the attempt's start

Ordinals count from 1 within one attempt, so that a name means the same in every run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from chaoskit.model.errors import UsageError

Window = Literal["received", "applied", "answered"]
"""The moments of a request: nothing changed yet / changed, not told / told, not read."""

WINDOWS: tuple[Window, ...] = get_args(Window)

NAME = r"[A-Za-z0-9_][A-Za-z0-9_./:\-]*"
SERVICE = r"[A-Za-z_]\w*"
ORDINAL = r"[1-9][0-9]{0,3999}"
COUNT = r"0|[1-9][0-9]{0,3999}"
"""Numbers have one way to be written; Python reads no more digits than some 4000."""

_WINDOW = re.compile(
    rf"(?P<service>{SERVICE})\.(?P<operation>{NAME})#(?P<ordinal>{ORDINAL})"
    rf"\.(?P<window>{'|'.join(WINDOWS)})"
)
_CROSSING = re.compile(rf"(?P<name>{NAME})#(?P<ordinal>{ORDINAL})")
_TIME = re.compile(rf"(?P<ms>{COUNT})ms")


@dataclass(frozen=True, slots=True, order=True)
class WindowPoint:
    """A window of the ``ordinal``-th request for ``operation`` that an attempt sends a service."""

    service: str
    operation: str
    ordinal: int
    window: Window

    def __str__(self) -> str:
        return f"{self.service}.{self.operation}#{self.ordinal}.{self.window}"


@dataclass(frozen=True, slots=True, order=True)
class CrossingPoint:
    """The ``ordinal``-th time that an attempt passes ``probe.point(name)``."""

    name: str
    ordinal: int

    def __str__(self) -> str:
        return f"{self.name}#{self.ordinal}"


@dataclass(frozen=True, slots=True, order=True)
class TimePoint:
    """``delay_ms`` milliseconds after the attempt was started."""

    delay_ms: int

    def __str__(self) -> str:
        return f"{self.delay_ms}ms"


Point = WindowPoint | CrossingPoint | TimePoint


def parse_point(text: str) -> Point:
    """The point that ``text`` names; the inverse of ``str(point)``.

    Raises:
        UsageError: the text has none of the three forms.
    """
    if found := _WINDOW.fullmatch(text):
        window: Window = next(w for w in WINDOWS if w == found["window"])
        return WindowPoint(found["service"], found["operation"], int(found["ordinal"]), window)
    if found := _TIME.fullmatch(text):
        return TimePoint(int(found["ms"]))
    if found := _CROSSING.fullmatch(text):
        return CrossingPoint(found["name"], int(found["ordinal"]))
    raise UsageError(
        f"not a point: {text!r}; write payments.charge#23.applied (a service window), "
        "charge.done#3 (a crossing) or 250ms (a time)"
    )
