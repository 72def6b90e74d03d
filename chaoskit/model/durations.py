"""Durations, as users write them: ``90s``, ``5m``, ``24h``, ``7d``, or a number of seconds."""

from __future__ import annotations

import math
import re

from chaoskit.model.errors import UsageError

UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}

_DURATION = re.compile(r"(?P<number>[1-9][0-9]{0,8})(?P<unit>[smhd])")


def parse_duration(given: object, what: str) -> float:
    """The seconds of ``given``: a text, or seconds already.

    Args:
        given: ``"24h"``, or a number that is more than 0.
        what: whose duration it is, for the message.

    Raises:
        UsageError: it is neither.
    """
    if isinstance(given, str) and (found := _DURATION.fullmatch(given)):
        return int(found["number"]) * UNITS_S[found["unit"]]
    if isinstance(given, int | float) and math.isfinite(given) and given > 0:
        return given
    raise UsageError(f"{what} takes a time, as in 90s, 5m, 24h or 7d; not {given!r}")


def duration_text(seconds: int) -> str:
    """So many seconds in the largest unit that holds them without a rest."""
    unit = next(unit for unit in reversed(UNITS_S) if seconds % UNITS_S[unit] == 0)
    return f"{seconds // UNITS_S[unit]}{unit}"
