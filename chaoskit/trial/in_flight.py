"""Requests that were in flight when their sender died, and land later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chaoskit.model.effects import Effect


@dataclass(frozen=True, slots=True)
class LateRequest:
    """A request in flight when its sender died; ``land`` applies it and says what it changed."""

    attempt: int
    number: int
    service: str
    land: Callable[[], Sequence[Effect]]


class InFlight:
    """What is under way in one trial. ``land`` is called with each request when it arrives."""

    def __init__(self, land: Callable[[LateRequest], None]) -> None:
        self._land = land
        self._waiting: list[tuple[LateRequest, int | None]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, late: LateRequest, after: int | None) -> None:
        """One more, which lands when its service has had ``after`` others; None: at the end."""
        self._waiting.append((late, after))

    def passed(self, service: str) -> None:
        """``service`` has had one more request."""
        waiting = []
        for late, left in self._waiting:
            rest = left - 1 if left is not None and late.service == service else left
            if rest == 0:
                self._land(late)
            else:
                waiting.append((late, rest))
        self._waiting = waiting

    def end(self) -> None:
        """The task has ended: all that is left lands."""
        waiting, self._waiting = self._waiting, []
        for late, _ in waiting:
            self._land(late)
