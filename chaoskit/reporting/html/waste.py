"""What the kills cost: work and effects again, seconds, and money where an amount is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median

from chaoskit.model.events import CallSeen
from chaoskit.model.history import History
from chaoskit.reporting.html import money
from chaoskit.reporting.html.repeats import Repetition


@dataclass(frozen=True, slots=True)
class Cost:
    """One line: what, in how many trials, how much ``in_all``, and the ``most`` in one trial."""

    what: str
    trials: int
    in_all: str
    most: str
    worst: int | None = None


@dataclass
class Waste:
    """Counts trial by trial; `costs` sums up.

    ``survey`` is an undisturbed run. Times are compared with its time only if it was not traced: a
    trial by a real kill is not, and would seem to be quicker.
    """

    survey: History | None
    _steps: list[tuple[int, int]] = field(default_factory=list)
    _effects: list[tuple[int, int]] = field(default_factory=list)
    _deduped: list[tuple[int, int]] = field(default_factory=list)
    _seconds: list[tuple[float, int]] = field(default_factory=list)
    _money: Counter[str] = field(default_factory=Counter)
    _dearest: dict[str, tuple[int, int]] = field(default_factory=dict)
    _moneyed: set[int] = field(default_factory=set)

    def add(self, number: int, history: History, found: Repetition, *, real: bool) -> None:
        """Count one trial.

        Args:
            number: of the trial.
            history: of it.
            found: what it repeated.
            real: its process was killed; a resume from a copy has no time of its own.
        """
        self._steps.append((found.steps, number))
        self._effects.append((found.effects, number))
        self._deduped.append((max(0, found.deduped - self._usual), number))
        if real and self._timed:
            self._seconds.append((_seconds(history) - _seconds(self.survey), number))
        mine: Counter[str] = Counter()
        for extra in found.extras:
            amount = money.amount_of(extra.effect)
            if amount is not None:
                mine[amount[0]] += amount[1] * extra.surplus
        for currency, units in mine.items():
            if units:
                self._money[currency] += units
                self._moneyed.add(number)
                self._dearest[currency] = max(self._dearest.get(currency, (0, 0)), (units, number))

    @cached_property
    def _usual(self) -> int:
        """How many requests an undisturbed run has that are answered with an earlier answer."""
        replies = self.survey.replies.values() if self.survey is not None else ()
        return sum(reply.deduped for _, reply in replies)

    @cached_property
    def _timed(self) -> bool:
        return self.survey is not None and not any(self.survey.of(CallSeen))

    @property
    def costs(self) -> list[Cost]:
        """The lines, those that are nothing left out."""
        return [*self._counted(), *self._moneys(), *self._times()]

    def _counted(self) -> Iterable[Cost]:
        for what, rows in (
            ("steps that were complete, and begun again", self._steps),
            ("effects that happened once too often", self._effects),
            ("requests that a service answered with an earlier answer", self._deduped),
        ):
            some = [row for row in rows if row[0]]
            if some:
                most, number = max(some, key=lambda row: (row[0], -row[1]))
                yield Cost(what, len(some), f"{_sum(some):,}", f"{most:,}", number)

    def _moneys(self) -> Iterable[Cost]:
        for currency, units in sorted(self._money.items()):
            most, number = self._dearest[currency]
            yield Cost(
                "money that those effects move",
                len(self._moneyed),
                money.in_words({currency: units}),
                money.in_words({currency: most}),
                number,
            )

    def _times(self) -> Iterable[Cost]:
        if self._seconds:
            most, number = max(self._seconds)
            middle = median(seconds for seconds, _ in self._seconds)
            yield Cost(
                "seconds beyond the undisturbed run, in real kills that were followed to their end",
                len(self._seconds),
                f"{middle:+.2f} s in the middle",
                f"{most:+.2f} s",
                number,
            )


def _seconds(history: History | None) -> float:
    """How long all attempts took together."""
    return sum(body.seconds for _, body in history.attempts) if history is not None else 0.0


def _sum(rows: Sequence[tuple[int, int]]) -> int:
    return sum(number for number, _ in rows)
