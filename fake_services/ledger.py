"""The ledger: a service's append-only book of effects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chaoskit.model.effects import Effect


class Ledger:
    """Effects in the order in which they happened; nothing is ever taken out but by `clear`."""

    def __init__(self) -> None:
        self._entries: list[Effect] = []

    def book(self, effects: Iterable[Effect]) -> None:
        """Append ``effects``."""
        self._entries.extend(effects)

    def clear(self) -> None:
        """An empty book, for a new world."""
        self._entries.clear()

    @property
    def entries(self) -> Sequence[Effect]:
        """Every effect since the last `clear`."""
        return tuple(self._entries)
