"""Older copies: what a task cannot know after files of an earlier moment were put back.

What was completed since that moment stands in no file any more. To begin it again is right: with a
key, or after a look at the service, nothing happens twice. What the copy holds is known as ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Self

from chaoskit.checkers.work import Progress, Redo, Which, Work
from chaoskit.model.events import AttemptStarted
from chaoskit.model.history import History


@dataclass(frozen=True, slots=True)
class OlderCopies:
    """The older copies that were put back in one trial.

    ``spans``: for each of them the first attempt that finds it, the event at which it was made, and
    the event at which it was put back.
    """

    spans: Sequence[tuple[int, int, int]] = ()

    @classmethod
    def of(cls, history: History) -> Self:
        """Those of ``history``."""
        faults = [(index, body.attempt, body.fault) for index, body in history.landed]
        paused = {attempt for _, attempt, fault in faults if fault.startswith("pause@")}
        began = {body.attempt: index for index, body in history.of(AttemptStarted)}

        def made(attempt: int) -> int:
            # what runs beside a paused attempt finds the files that this one has written
            first = attempt - 2 if attempt - 2 in paused else attempt - 1
            return began.get(first, 0)

        return cls(
            [(n, made(n), index) for index, n, text in faults if text.startswith("damage:stale:")]
        )

    def holds(self, index: int, attempt: int) -> bool:
        """Whether ``attempt`` can know what earlier attempts did at event ``index``."""
        return not any(attempt >= first and made < index < back for first, made, back in self.spans)

    def done_before(self, made: Progress, attempt: int) -> list[Work]:
        """What earlier attempts have completed, as far as ``attempt`` can know it."""
        return [work for work in made.done_before(attempt) if self.holds(work.index, attempt)]

    def redone(self, made: Progress) -> Sequence[Redo]:
        """What was begun again although the attempt could know that it was complete."""
        if not self.spans:
            return made.redone
        met: Counter[tuple[Which, int]] = Counter()
        found: list[Redo] = []
        for redo in made.redone:
            if redo.within:
                found.append(redo)
                continue
            which, attempt = redo.again.which, redo.attempt
            settled = [
                work
                for work in made.done
                if work.which == which
                and work.attempt < attempt
                and work.index < made.began.get(attempt, inf)
            ]
            known = [work for work in settled if self.holds(work.index, attempt)]
            most = made.allowed.get(which, 1)
            left = max(0, most - len(known)) - max(0, most - len(settled))
            met[which, attempt] += 1
            if known and met[which, attempt] > left:
                found.append(replace(redo, first=known[0]))
        return found
