"""Schedules as people paste them from reports: a schedule, one fault of it, or a point."""

from __future__ import annotations

import re

from chaoskit.model.errors import UsageError
from chaoskit.model.points import parse_point
from chaoskit.model.preludes import parse_prelude
from chaoskit.model.schedule import Schedule, kill, parse_schedule
from chaoskit.model.secrets import BLOT

_SEPARATED = re.compile(r"(?:^|\s)[/+]$")
_SEPARATES = re.compile(r"[/+](?:\s|$)")
"""A line that ends with a separator of attempts or faults, and one that begins with it."""

_CUT = re.compile(r"… \([0-9]+ characters\)")


def read_schedule(text: str) -> Schedule:
    """The schedule that ``text`` names; of a point a kill there.

    A narrow terminal breaks a long schedule into lines: such breaks mean nothing.

    Raises:
        UsageError: it names none; or a report has left out a part of it.
    """
    whole = _on_one_line(text)
    try:
        return Schedule(((kill(parse_point(whole)),),))
    except UsageError as no_point:
        try:
            return parse_schedule(whole)
        except UsageError as wrong:
            if BLOT in whole or _CUT.search(whole):
                raise UsageError(
                    f"{whole!r} is not the whole schedule: the report left out a part that is "
                    "secret or long; paste its line `chaoskit replay ck1-…` instead"
                ) from wrong
            if "@" in whole or _begins_a_prelude(whole):
                raise
            raise no_point from None


def _begins_a_prelude(text: str) -> bool:
    try:
        return parse_prelude(text.partition(" ")[0]) is not None
    except UsageError:
        return True


def _on_one_line(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines()]
    whole = lines[0] if lines else ""
    for line in lines[1:]:
        apart = _SEPARATED.search(whole) or _SEPARATES.match(line)
        whole += f" {line}" if apart else line
    return whole
