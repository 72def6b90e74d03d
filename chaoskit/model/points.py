"""Points: the places where a fault may land, and their text form.

    pwrite(run.db-wal)#17             a system call: before the 17th such one of an attempt
    sendto(payments)#4+after          after one
    write(big.bin)#1+short:4096       after one that was cut short to its first 4096 bytes
    p1.p2:rename(a.tmp->a)#1          one of another process than the first
    write(out.*.tmp)#1                one on a file whose name varies from run to run
    payments.charge#23.applied        a service window: the 23rd such request of an attempt
    charge.done#3                     a crossing: the third time the code passed it in an attempt
    250ms                             a time after the attempt's start

Ordinals count from 1 within one attempt, so that a name means the same in every run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from chaoskit.model.errors import UsageError, nearest

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
_NO_WINDOW = re.compile(rf"{SERVICE}\.{NAME}#{ORDINAL}\.(?P<window>\w+)")
_CROSSING = re.compile(rf"(?P<name>{NAME})#(?P<ordinal>{ORDINAL})")
_TIME = re.compile(rf"(?P<ms>{COUNT})ms")

WHO = r"p[1-9][0-9]{0,8}(?:\.p[1-9][0-9]{0,8})*"
TARGET = r"[A-Za-z0-9_.,:=@~*/%>\-]*"
CALL = r"[a-z][a-z0-9_]*"
_CALL = re.compile(
    rf"(?:(?P<who>{WHO}):)?(?P<call>{CALL})\((?P<target>{TARGET})\)#(?P<ordinal>{ORDINAL})"
    rf"(?:\+(?P<side>after|short:(?P<bytes>{COUNT})))?"
)
_THREAD = re.compile(r"(?:(?:p[1-9][0-9]*\.)*)t[1-9][0-9]*:")
Side = Literal["before", "after", "short"]
"""Where a call is met: nothing of it done yet / all of it done / a part of it done, and no more."""


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
class CallPoint:
    """The ``ordinal``-th system call ``call`` on ``target`` by one process of an attempt.

    Args:
        call: the call's name without what differs between architectures (``openat`` is ``open``).
        target: a file relative to the work folder, or the name of a service; other characters
            than letters, digits and some marks stand as %XX, what varies from run to run as ``*``.
        ordinal: counts from 1, for this process, call and target, whichever thread makes the call.
        side: before the call, after it, or after it was cut ``short``.
        bytes: how much of a write that is cut short takes place; 0 otherwise.
        who: which process, by order of birth: empty for the first one, ``p1`` for its first
            child, ``p1.p2`` for that one's second child.
    """

    call: str
    target: str
    ordinal: int
    side: Side = "before"
    bytes: int = 0
    who: str = ""

    def __str__(self) -> str:
        who = f"{self.who}:" if self.who else ""
        where = {"before": "", "after": "+after", "short": f"+short:{self.bytes}"}[self.side]
        return f"{who}{self.call}({self.target})#{self.ordinal}{where}"


@dataclass(frozen=True, slots=True, order=True)
class TimePoint:
    """``delay_ms`` milliseconds after the attempt was started."""

    delay_ms: int

    def __str__(self) -> str:
        return f"{self.delay_ms}ms"


@dataclass(frozen=True, slots=True, order=True)
class StartPoint:
    """Before an attempt begins. It has no text form: what is done there needs no place."""

    def __str__(self) -> str:
        return "the start"


START = StartPoint()

Point = CallPoint | WindowPoint | CrossingPoint | TimePoint | StartPoint


def parse_point(text: str) -> Point:
    """The point that ``text`` names; the inverse of ``str(point)``.

    Raises:
        UsageError: the text has none of the four forms.
    """
    if found := _CALL.fullmatch(text):
        return _call_point(found)
    if found := _WINDOW.fullmatch(text):
        window: Window = next(w for w in WINDOWS if w == found["window"])
        return WindowPoint(found["service"], found["operation"], int(found["ordinal"]), window)
    if found := _TIME.fullmatch(text):
        return TimePoint(int(found["ms"]))
    if found := _CROSSING.fullmatch(text):
        return CrossingPoint(found["name"], int(found["ordinal"]))
    slip = ""
    if found := _THREAD.match(text):
        raise UsageError(
            f"not a point: {text!r} names a thread, which points no longer do: leave out "
            f"{text[: found.end()].rpartition('.')[2].removesuffix(':')!r}, and take the ordinal "
            "from a new run: it counts the calls of the whole process"
        )
    if found := _NO_WINDOW.fullmatch(text):
        near = ", ".join(nearest(found["window"].lower(), WINDOWS))
        slip = f", since {found['window']} is no window; nearest: {near}"
    raise UsageError(
        f"not a point: {text!r}{slip}; write pwrite(run.db)#17 (a system call), "
        "payments.charge#23.applied (a service window), charge.done#3 (a crossing) "
        "or 250ms (a time)"
    )


def _call_point(found: re.Match[str]) -> CallPoint:
    side: Side = "before"
    if found["side"] is not None:
        side = "after" if found["bytes"] is None else "short"
    return CallPoint(
        found["call"],
        found["target"],
        int(found["ordinal"]),
        side,
        int(found["bytes"] or 0),
        found["who"] or "",
    )
