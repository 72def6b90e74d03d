"""Names that differ from run to run: one name for all of them.

A pid, a random number or a thread's id in a file's name makes another name in each run. What varies
stands as ``*`` in a point. Which names do is learnt from baseline runs (`chaoskit.explore.names`);
here is how a learnt name is used, in the tracer and on a history alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_REMEMBERED_MOST = 10_000


class Varying:
    """Gives each file its name for points.

    Args:
        names: learnt ones. With a ``*`` in its last part it stands for all names that fit, in that
            folder; without one it stays itself although it fits another one.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._fixed: set[str] = set()
        self._patterns: dict[str, list[tuple[re.Pattern[str], str]]] = {}
        for name in sorted(names, key=_unspecific):
            folder, last = _parted(name)
            self._fixed.add(name)
            if "*" in last:
                self._patterns.setdefault(folder, []).append((_pattern(last), name))
        self._known: dict[str, str] = {}

    def of(self, path: str) -> str:
        """The name of a file: what varies in its last part and in those of its folders as ``*``."""
        if not self._patterns:
            return path
        known = self._known.get(path)
        if known is None:
            if len(self._known) >= _REMEMBERED_MOST:
                self._known.clear()
            known = self._known[path] = self._found(path)
        return known

    def _found(self, path: str) -> str:
        name, given = "", path.split("/")
        for part in given:
            own = f"{name}/{part}" if name else part
            if own not in self._fixed:
                fits = (n for pattern, n in self._patterns.get(name, ()) if pattern.fullmatch(part))
                own = next(fits, own)
            name = own
        return name


def _parted(name: str) -> tuple[str, str]:
    folder, _, last = name.rpartition("/")
    return folder, last


def _pattern(part: str) -> re.Pattern[str]:
    return re.compile(".+".join(map(re.escape, part.split("*"))), re.DOTALL)


def _unspecific(name: str) -> tuple[int, str]:
    """The names that say most come first."""
    return -len(name.replace("*", "")), name
