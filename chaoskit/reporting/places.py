"""Where a kill was: between which deeds of the task, and in which line of its code."""

from __future__ import annotations

import math
import os
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chaoskit.explore.plan import window_of
from chaoskit.model.events import CallSeen, Crossed, EffectApplied, ReplySent, RequestReceived
from chaoskit.model.history import History
from chaoskit.model.points import CallPoint, CrossingPoint, Point
from chaoskit.model.schedule import Fault

CodeLocation = tuple[str, int, str]
"""File, line and function."""

Stack = tuple[CodeLocation, ...]
"""A line of the task's own code, and those that called it, the innermost one first."""


@dataclass(frozen=True, slots=True)
class Place:
    """``between``: the effect and the writes on each side, in words; ``code``: empty if unknown.

    ``file``, ``line`` and ``function`` are of the line by which the place differs from others:
    where a helper is running that is called from several lines, the one that called it here.
    """

    between: str
    code: str
    file: str = ""
    line: int = 0
    function: str = ""


@dataclass(frozen=True, slots=True)
class _Deed:
    """Something that the undisturbed run changed, and where in its history; ``words``: the name as
    a reader is told it.
    """

    index: int
    name: str
    words: str
    effect: bool


class Places:
    """Finds places of the first attempt, by an undisturbed run and what was seen of its lines."""

    def __init__(self, survey: History | None, locations: Mapping[str, Stack]) -> None:
        self._locations = locations
        self._stacks = set(locations.values())
        self._indexes: dict[str, int] = {}
        self._deeds: list[_Deed] = []
        self._calls: list[int] = []
        if survey is not None:
            self._read(survey)
        self._effects = [at for at, deed in enumerate(self._deeds) if deed.effect]

    def _read(self, survey: History) -> None:
        asked: dict[int, RequestReceived] = {}
        for event in survey.events:
            body = event.body
            if getattr(body, "attempt", 1) != 1:
                continue
            if isinstance(body, CallSeen):
                self._indexes[body.call] = event.index
                self._calls.append(event.index)
                if not body.sends:
                    self._deeds.append(_Deed(event.index, body.call, body.in_words, effect=False))
            elif isinstance(body, Crossed):
                self._indexes[str(CrossingPoint(body.name, body.ordinal))] = event.index
            elif isinstance(body, RequestReceived):
                asked[body.request] = body
                self._indexes[str(window_of(body, "received"))] = event.index
                self._indexes.setdefault(str(window_of(body, "applied")), event.index)
            elif isinstance(body, EffectApplied) and body.request in asked:
                request = asked[body.request]
                name = f"{request.service}.{request.operation}#{request.ordinal}"
                self._indexes[str(window_of(request, "applied"))] = event.index
                self._deeds.append(_Deed(event.index, name, name, effect=True))
            elif isinstance(body, ReplySent) and body.request in asked:
                self._indexes[str(window_of(asked[body.request], "answered"))] = event.index

    def of(self, fault: Fault) -> Place:
        """Where ``fault`` of a first attempt took place."""
        point = fault.point
        stack = self._locations.get(str(point))
        if not stack:
            return Place(self._between(point), "")
        telling = self._telling(stack)
        code = _line(stack[telling])
        if telling:
            code += f", through {_line(stack[0])}"
        file, line, function = stack[telling]
        return Place(self._between(point), code, _short(file), line, function)

    def _telling(self, stack: Stack) -> int:
        """Which line of ``stack`` says where in the task this is: the innermost one by which it
        differs from every other stack that ends in the same line, and the innermost where none does
        (a loop). Where that is in the file of the helper itself, the line that entered the file,
        unless all places of the task have that one in common.
        """
        telling = self._different(stack)
        helper = stack[0][0]
        if stack[telling][0] == helper:
            for number, line in enumerate(stack):
                if line[0] != helper and any(line not in other for other in self._stacks):
                    return number
        return telling

    def _different(self, stack: Stack) -> int:
        others = self._stacks - {stack}
        for number in range(len(stack)):
            same = {other for other in others if other[: number + 1] == stack[: number + 1]}
            if not same:
                return number
            others = same
        return 0

    def _between(self, point: Point) -> str:
        split = self._split(point)
        if split is None:
            return ""
        within = _base(point) if isinstance(point, CallPoint) and point.side == "short" else ""
        number = bisect_left(self._deeds, split, key=lambda deed: deed.index)
        after = self._deeds[number] if number < len(self._deeds) else None
        if number and self._deeds[number - 1].name == within:
            number -= 1
        before = [self._deeds[at] for at in self._done(number)]
        words = []
        if before:
            words.append("after " + " and ".join(deed.words for deed in before))
        if within:
            words.append(f"within {within}")
        if after is not None:
            words.append(f"before {after.words}")
        return ", ".join(words)

    def _done(self, number: int) -> list[int]:
        """Of the first ``number`` deeds the last effect, and the last of all if it is another."""
        effects = bisect_left(self._effects, number)
        found = self._effects[effects - 1 : effects] if effects else []
        return found if not number or number - 1 in found else [*found, number - 1]

    def _split(self, point: Point) -> float | None:
        """What has happened at a point: every event with a smaller index than this."""
        if isinstance(point, CallPoint):
            index = self._indexes.get(_base(point))
            if index is None:
                return None
            if point.side == "after":  # and what was sent has landed by then
                later = bisect_right(self._calls, index)
                return self._calls[later] if later < len(self._calls) else math.inf
            return index + 0.5 if point.side == "short" else index
        index = self._indexes.get(str(point))
        if index is None or isinstance(point, CrossingPoint):
            return index
        return index + 0.5


def _base(point: CallPoint) -> str:
    """The call itself, whichever side of it is meant."""
    return str(CallPoint(point.call, point.target, point.ordinal, who=point.who))


def _line(location: CodeLocation) -> str:
    file, line, function = location
    return f"{_in_package(_short(file))}:{line} in {function}"


def _in_package(file: str) -> str:
    """A file that was installed, by its package: where that lies is long and says nothing."""
    for folder in ("/site-packages/", "/dist-packages/"):
        file = file.rpartition(folder)[2]
    return file


def _short(file: str) -> str:
    """A path as a reader would write it."""
    try:
        return os.fspath(Path(file).resolve().relative_to(Path.cwd()))
    except ValueError:
        return file
