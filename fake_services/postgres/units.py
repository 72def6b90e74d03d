"""What a client sends, cut into units: all that a server answers together, and what it does.

A unit ends with a simple query, a Sync or a Flush. Whether it commits depends on whether a
transaction block is open, which the server says at the end of each answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from fake_services.postgres.wire import Message, begins, changes, commits, first_word, statements

Deed = Literal["commit", "statement"]
"""A COMMIT that ends a block / a statement outside of any, which is its own commit."""

DEEDS: Sequence[Deed] = ("commit", "statement")

_ENDS = frozenset("QSHF")


@dataclass(frozen=True, slots=True)
class Unit:
    """Messages that are sent on together.

    ``ready``: the server says when it has dealt with them. ``executes`` is how many prepared
    statements it is asked to run. ``last``: nothing follows.
    """

    raw: bytes
    statements: Sequence[str] = ()
    ready: bool = False
    executes: int = 0
    last: bool = False


class Cutter:
    """Collects messages into units; knows what prepared statements and portals stand for."""

    def __init__(self) -> None:
        self._raw: list[bytes] = []
        self._run: list[str] = []
        self._executes = 0
        self._prepared: dict[str, str] = {}
        self._portals: dict[str, str] = {}

    def feed(self, found: Message) -> Iterator[Unit]:
        """The unit that ends with this message, if one does."""
        self._raw.append(found.raw)
        if found.kind == "Q":
            self._run += statements(found.text)
        elif found.kind == "P":
            self._prepared[found.text] = found.string(1)
        elif found.kind == "B":
            self._portals[found.text] = self._prepared.get(found.string(1), "")
        elif found.kind == "E":
            self._executes += 1
            self._run += statements(self._portals.get(found.text, ""))
        if found.kind in _ENDS or found.kind == "X":
            yield self._cut(ready=found.kind in "QSF", last=found.kind == "X")

    def rest(self) -> Unit:
        """What was sent without an end."""
        return self._cut(ready=False, last=False)

    def _cut(self, *, ready: bool, last: bool) -> Unit:
        unit = Unit(b"".join(self._raw), tuple(self._run), ready, self._executes, last)
        self._raw, self._run, self._executes = [], [], 0
        return unit


class Block:
    """Whether a transaction block is ``open``, as the server says, or as it will."""

    def __init__(self) -> None:
        self.open = False
        self._changed = False

    def ready(self, status: str) -> None:
        """The server has dealt with all that was sent; I: no block is open."""
        self.open, self._changed = status != "I", False

    def deed_of(self, unit: Unit) -> Deed | None:
        """What a unit that is sent on now does; None where it commits nothing."""
        deed: Deed | None = None
        for statement in unit.statements:
            if begins(statement):
                self.open = True
            elif commits(statement):
                deed = "commit" if self.open else deed
                self.open = "chain" in statement.lower().split()
            elif first_word(statement) in {"rollback", "abort"} and "to" not in statement.lower():
                self.open = False
            elif not self.open and changes(statement):
                self._changed = True  # kept at the end of the unit, if the server gets that far
        if deed is None and unit.ready and self._changed and not self.open:
            return "statement"
        return deed
