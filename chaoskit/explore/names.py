"""What baseline runs teach about names: which parts of them vary, so that a point keeps its name.

Two runs are compared folder by folder. Names that all runs have stay. The others are split into
words at their punctuation, and those of the same punctuation are compared word by word, as sets:
``done-0-tmp-411`` and ``done-1-tmp-87`` in one run, ``done-0-tmp-93`` and ``done-1-tmp-520`` in
another one have the same numbers in the second place and others in the fourth. So these are
``done-0-tmp-*`` and ``done-1-tmp-*``, in whatever order the files were written.

Only what may be a number, a hash or a random word varies so. ``alpha`` in one run and ``beta`` in
the other are two files, and a task that writes either of them is no task that repeats.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from chaoskit.model.events import CallSeen, Event
from chaoskit.model.history import History
from chaoskit.model.points import CallPoint, parse_point
from chaoskit.trace import OUTSIDE
from chaoskit.trace.varying import Varying

_WORDS = (r"([A-Za-z0-9]+)", r"([A-Za-z0-9_]+)", r"([A-Za-z0-9_=+~-]+)")
"""Ways to split a name, from fine to coarse: random words may hold what looks like punctuation. A
name is compared in the first way in which another run has one of the same punctuation.
"""

_NUMBERED = re.compile(r"([A-Za-z_]*)[0-9]+([A-Za-z_]*)")
_ADJACENT = re.compile(r"\*(?:[-_:+=~]?\*)+")

Split = tuple[str, ...]
"""A name in parts: punctuation at even places, words at odd ones."""

Group = list[set[Split]]
"""Names of the same punctuation, for each run."""

Below = list[set[tuple[str, ...]]]
"""Paths below one folder in parts, for each run."""


def varying(runs: Sequence[History]) -> tuple[str, ...]:
    """The names of files that differ between undisturbed runs, for `Varying`."""
    found: list[str] = []
    waiting: list[tuple[str, Below]] = [("", [_paths(run) for run in runs])]
    while waiting:
        folder, below = waiting.pop()
        learnt = _learnt([{path[0] for path in paths} for paths in below])
        found += (folder + name for name in learnt)
        names = Varying(learnt)
        deeper: dict[str, Below] = {}
        for run, paths in enumerate(below):
            for first, *rest in paths:
                if rest:
                    some = deeper.setdefault(names.of(first), [set() for _ in runs])
                    some[run].add(tuple(rest))
        waiting += ((f"{folder}{name}/", paths) for name, paths in deeper.items())
    return tuple(sorted(found))


def renamed(history: History, names: Iterable[str]) -> History:
    """The history as a tracer that knows these names would have told it."""
    known = Varying(names)
    counts: Counter[tuple[int, str]] = Counter()

    def told(event: Event) -> Event:
        body = event.body
        if not isinstance(body, CallSeen):
            return event
        point = parse_point(body.call)
        assert isinstance(point, CallPoint)
        parts = point.target.split("->")
        target = point.target if body.sends else "->".join(map(known.of, parts))
        base = str(CallPoint(point.call, target, 1, who=point.who)).removesuffix("1")
        counts[body.attempt, base] += 1
        text = f"{base}{counts[body.attempt, base]}"
        return msgspec.structs.replace(event, body=msgspec.structs.replace(body, call=text))

    return History(tuple(map(told, history.events)))


def _paths(run: History) -> set[tuple[str, ...]]:
    """The files that calls of a run name, in parts."""
    found: set[str] = set()
    for _, seen in run.of(CallSeen):
        point = parse_point(seen.call)
        if isinstance(point, CallPoint) and not seen.sends:
            found.update(point.target.split("->"))
    return {tuple(path.split("/")) for path in found - {"", OUTSIDE}}


def _learnt(runs: Sequence[set[str]]) -> set[str]:
    """What varies among the names in one folder; and names that only look as if they did."""
    shared = set.intersection(*runs)
    left = [names - shared for names in runs]
    found: set[str] = set()
    for words in _WORDS:
        groups: dict[Split, Group] = {}
        for run, names in enumerate(left):
            for name in names:
                parts = tuple(re.split(words, name))
                groups.setdefault(parts[::2], [set() for _ in runs])[run].add(parts)
        compared = [some for group in groups.values() if len(some := [*filter(None, group)]) > 1]
        for group in compared:
            found |= _of_group(group)
        settled = {"".join(parts) for group in compared for names in group for parts in names}
        left = [names - settled for names in left]
    known = Varying(found)
    return found | {name for name in shared if known.of(name) != name}


def _of_group(group: Group) -> set[str]:
    """The names, with ``*``, that at least two of these runs have in common."""
    places = range(1, len(next(iter(group[0]))), 2)
    values = {place: [{name[place] for name in names} for names in group] for place in places}
    shown = [{_starred(name, values) for name in names} for names in group]
    counts = Counter(name for names in shown for name in names)
    return {name for name, times in counts.items() if times > 1 and "*" in name}


def _starred(name: Split, values: dict[int, list[set[str]]]) -> str:
    parts = [_word(part, values[at]) if at in values else part for at, part in enumerate(name)]
    return _ADJACENT.sub("*", "".join(parts))


def _word(word: str, runs: Sequence[set[str]]) -> str:
    """A word of a name; or ``*``, if it is one that varies among those in its place."""
    shared = set.intersection(*runs)
    if all(words == shared for words in runs) or (word in shared and not word.isdigit()):
        return word
    numbered = _NUMBERED.fullmatch(word)
    if numbered is not None and all(_has_number(words, numbered) for words in runs):
        return f"{numbered[1]}*{numbered[2]}"
    others = set.union(*runs) - shared
    alike = [other for other in others if len(other) == len(word)]
    if not word.isalnum() and len(alike) < len(runs):  # what is drawn has one length
        return word
    return "*" if any(map(_has_digit, alike)) else word


def _has_number(words: set[str], like: re.Match[str]) -> bool:
    """Whether one of the words is a number between the same letters."""
    found = map(_NUMBERED.fullmatch, words)
    return any(other is not None and other.groups() == like.groups() for other in found)


def _has_digit(word: str) -> bool:
    return any(character.isdigit() for character in word)
