"""What a trial repeated: the effects that happened too often, and the work that was done again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chaoskit.checkers.comparison import compare
from chaoskit.checkers.older import OlderCopies
from chaoskit.checkers.progress import progress
from chaoskit.model.effects import Effect, Identity
from chaoskit.model.events import EffectApplied
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Judgement
from chaoskit.model.history import History
from chaoskit.reporting.html.tape import Marked


@dataclass(frozen=True, slots=True)
class Extra:
    """One identity that a trial has more often than ``expected``: each time with its event."""

    identity: Identity
    expected: int
    seen: tuple[tuple[int, EffectApplied], ...]

    @property
    def surplus(self) -> int:
        """How many times too often."""
        return len(self.seen) - self.expected

    @property
    def effect(self) -> Effect:
        """One of them, for its words."""
        return self.seen[-1][1].effect


@dataclass(frozen=True, slots=True)
class Repetition:
    """``extras`` are effects, ``steps`` counts work that was begun again after it was complete."""

    extras: tuple[Extra, ...]
    steps: int
    deduped: int
    marked: Marked

    @property
    def effects(self) -> int:
        """How many effects too many there were."""
        return sum(extra.surplus for extra in self.extras)


def repetition(history: History, expectation: Expectation, judgement: Judgement) -> Repetition:
    """What the trial with this history repeated, and which of its events show it."""
    extras = tuple(
        Extra(identity, expected, tuple(seen))
        for identity, expected, seen in compare(history, expectation).extra
    )
    known = OlderCopies.of(history).redone(progress(history, expectation))
    redone = {redo.again.index: redo.first for redo in known}
    marked = Marked(
        repeats=dict(_links(extras)),
        redone=redone,
        witness=frozenset(index for one in judgement.findings for index in one.witness),
    )
    deduped = sum(reply.deduped for _, reply in history.replies.values())
    return Repetition(extras, len(redone), deduped, marked)


def _links(extras: tuple[Extra, ...]) -> Iterator[tuple[int, int]]:
    """Each effect that is one too many, and the first one of its identity."""
    for extra in extras:
        first = extra.seen[0][0]
        for index, _ in extra.seen[extra.expected :]:
            yield index, first
