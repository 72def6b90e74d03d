"""What a transaction did to a table: its changes, folded to the difference between before and
after. Pure, and the same for every kind of database.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

R = TypeVar("R")

Alike = Callable[[R], Hashable]
"""What two rows have in common that are taken for the same one."""


@dataclass(frozen=True, slots=True)
class Change(Generic[R]):
    """A row that was there before (None: it was inserted) and is there now (None: deleted)."""

    was: R | None
    now: R | None


def fold(
    changes: Iterable[Change[R]],
    content: Alike[R],
    same: Sequence[tuple[Alike[R], Alike[R]]],
    keys: Callable[[R], Iterable[Hashable]],
) -> list[Change[R]]:
    """The net effect of ``changes`` to one table, in the order in which the rows got there.

    A row that is changed twice is changed once; one that comes and goes was never there; one that
    goes and comes back as it was did not change. A row that comes where one with its key went has
    taken its place. What is left of an UPDATE otherwise stays an update.

    Args:
        changes: of one transaction, in order.
        content: all that a row holds.
        same: how a row that was there is compared with one that is there now, exact ways first.
        keys: of a row, each of which no other row has at the same time.
    """
    net = _Chain(content, content).of(changes)
    for was, now in same:
        net = _Chain(was, now).of(net)
    return _by_keys(net, keys)


class _Chain(Generic[R]):
    """Changes without the rows in between: what one left is what another one found."""

    def __init__(self, was: Alike[R], now: Alike[R]) -> None:
        self._was, self._now = was, now
        self._kept: dict[int, Change[R]] = {}
        self._found: dict[Hashable, list[int]] = defaultdict(list)
        self._left: dict[Hashable, list[int]] = defaultdict(list)

    def of(self, changes: Iterable[Change[R]]) -> list[Change[R]]:
        """``changes``, in the order of the last that was done to each row."""
        for number, change in enumerate(changes):
            first, last = change.was, change.now
            if first is not None and (before := self._take(self._left[self._was(first)])):
                first = before.was
            if last is not None and (after := self._take(self._found[self._now(last)])):
                last = after.now
            self._keep(number, Change(first, last))
        return list(self._kept.values())

    def _take(self, places: list[int]) -> Change[R] | None:
        while places:
            change = self._kept.pop(places.pop(), None)
            if change is not None:
                return change
        return None

    def _keep(self, number: int, change: Change[R]) -> None:
        found = None if change.was is None else self._was(change.was)
        left = None if change.now is None else self._now(change.now)
        if found == left:  # never there, or as it was
            return
        self._kept[number] = change
        if found is not None:
            self._found[found].append(number)
        if left is not None:
            self._left[left].append(number)


def _by_keys(
    changes: Sequence[Change[R]], keys: Callable[[R], Iterable[Hashable]]
) -> list[Change[R]]:
    """``changes`` with each row that is there now beside the one that had its key before."""
    was = [change.was for change in changes]
    at = {key: n for n, row in enumerate(was) if row is not None for key in keys(row)}
    for number, change in enumerate(changes):
        there = () if change.now is None else keys(change.now)
        other = next((at[key] for key in there if key in at), number)
        if other != number:
            was[number], was[other] = was[other], was[number]
            for place in (number, other):
                row = was[place]
                at.update({} if row is None else dict.fromkeys(keys(row), place))
    paired = (Change(row, change.now) for row, change in zip(was, changes, strict=True))
    return [c for c in paired if c.was is not None or c.now is not None]
