"""Preludes: what is done to the world before an attempt begins, as text and as value.

clock:+7d               the services' clocks have moved on by a week, and the task's where it can
damage:torn:run.db      a file in the work folder has lost its end
change:price            what the scenario declares under that name: another world, other inputs,
                        other environment, other code
resumers:8              the attempt is eight processes, let go at the same moment
down:3@payments.*#*     a service misbehaves during this attempt (`chaoskit.model.behaviours`)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from chaoskit.model.behaviours import KINDS as BEHAVIOURS
from chaoskit.model.behaviours import Behaviour, parse_behaviour
from chaoskit.model.durations import UNITS_S
from chaoskit.model.errors import UsageError, unknown_name
from chaoskit.model.points import NAME

How = Literal["torn", "zero", "empty", "missing", "stale"]
"""How a file is damaged: without its last third, at least a byte / NULs in place of its content /
no content / not there / as it was when the attempt before began, gone if it was not there then."""

HOWS: tuple[How, ...] = get_args(How)

WHOLE = "**/*"
"""The pattern of all files in all folders. An older copy of these is all that a task knows."""

FORMS = ("clock:+7d", "damage:torn:GLOB", "change:NAME", "resumers:2")

CLOCK_MAX_S = 100 * 365 * 86400
"""How far clocks are moved at once, at the most: programs and services can still tell the date."""

_GLOB = r"[A-Za-z0-9_.,:=~*?\[\]/\-]+"
_OTHER = re.compile(r"[^A-Za-z0-9_.,:=~*?\[\]/\-]")
"""A character that no pattern in a schedule has."""

_CLOCK = re.compile(r"clock:\+(?P<number>[1-9][0-9]{0,8})(?P<unit>[smhd])")
_DAMAGE = re.compile(rf"damage:(?P<how>[a-z]+):(?P<files>{_GLOB})")
_CHANGE = re.compile(rf"change:(?P<name>{NAME})")
_RESUMERS = re.compile(r"resumers:(?P<number>[2-9]|[1-9][0-9])")


@dataclass(frozen=True, slots=True)
class Clock:
    """All clocks have moved on by ``number`` of ``unit`` (s, m, h, d)."""

    number: int
    unit: str

    def __str__(self) -> str:
        return f"clock:+{self.number}{self.unit}"

    @property
    def seconds(self) -> int:
        """By how much."""
        return self.number * UNITS_S[self.unit]


@dataclass(frozen=True, slots=True)
class Damage:
    """The ``files`` (a glob pattern, relative to the work folder) are damaged."""

    how: How
    files: str

    def __str__(self) -> str:
        return f"damage:{self.how}:{self.files}"


@dataclass(frozen=True, slots=True)
class Changed:
    """What the scenario declares under ``name`` holds from now on."""

    name: str

    def __str__(self) -> str:
        return f"change:{self.name}"


@dataclass(frozen=True, slots=True)
class Resumers:
    """The attempt is ``number`` processes at once, 2 to 99."""

    number: int

    def __str__(self) -> str:
        return f"resumers:{self.number}"


Prelude = Clock | Damage | Changed | Resumers | Behaviour


def damage_text(how: How, files: str) -> str:
    """The text of a damage to ``files``, any glob pattern: ``?`` stands for what a text cannot
    hold, such as a blank.
    """
    return f"damage:{how}:{_OTHER.sub('?', files)}"


def parse_clock(text: str) -> Clock | None:
    """The advance of all clocks that ``text`` names; None: it is none.

    Raises:
        UsageError: by too much.
    """
    found = _CLOCK.fullmatch(text)
    if found is None:
        return None
    clock = Clock(int(found["number"]), found["unit"])
    if clock.seconds > CLOCK_MAX_S:
        raise UsageError(f"{text!r}: clocks move on by 100 years at once, at the most")
    return clock


def parse_prelude(text: str) -> Prelude | None:
    """The prelude that ``text`` names; the inverse of ``str(prelude)``. None: it is of another
    kind (a fault at a point).

    Raises:
        UsageError: it begins like a prelude, and is none.
    """
    kind = text.partition("@")[0].partition(":")[0]
    if kind in BEHAVIOURS:
        return parse_behaviour(text)
    if kind not in {"clock", "damage", "change", "resumers"}:
        return None
    if clock := parse_clock(text):
        return clock
    if found := _DAMAGE.fullmatch(text):
        how = next((known for known in HOWS if known == found["how"]), None)
        if how is None:
            raise unknown_name("damage", found["how"], HOWS)
        if found["files"].startswith("/") or ".." in found["files"].split("/"):
            raise UsageError(f"{text!r}: only files in the work folder are damaged")
        return Damage(how, found["files"])
    if found := _CHANGE.fullmatch(text):
        return Changed(found["name"])
    if found := _RESUMERS.fullmatch(text):
        return Resumers(int(found["number"]))
    raise UsageError(f"not a prelude: {text!r}; write one of {', '.join(FORMS)} (2 to 99 resumers)")
