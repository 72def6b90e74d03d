"""Soak: an endless stream of random schedules over everything that a survey found.

A sweep tries each point once, alone; a soak goes on for as long as it may, with several kills in
one trial and with moments that no point names. How it draws:

* **How many attempts suffer a fault:** one to ``kills_max``, each number half as likely as the one
  below it, since a fault of a late attempt often finds that there is nothing left to hit.
* **Where each fault lands:** a known one three times out of four, each of them equally likely; else
  a plain kill at a random time, each millisecond of an undisturbed run equally likely.
* **A schedule of known faults only is dealt like a card:** it does not come again until all of them
  were given. Where all with the drawn number of attempts were, another number is drawn; after the
  last one a new round begins, because only a repeat can tell that a point is flaky.

* **What is done before an attempt:** where there are preludes to draw from, every second resume has
  one of them, and every fourth first attempt one of those that suit it. The attempt after a pause
  has none: it runs beside the one before.

The same arguments give the same stream. Shards take turns in it: ``islice(stream, k, None, n)``.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from chaoskit.model.actions import Beside, Pause
from chaoskit.model.points import CallPoint, Point, TimePoint
from chaoskit.model.preludes import Resumers
from chaoskit.model.schedule import Fault, Schedule, kill

TIMED = 0.25
"""How often a fault is a kill at a random time, where there are known faults to draw instead."""

PREPARED, MISLED = 0.5, 0.25
"""How often something is done before a resume, and to a request of the first attempt."""

RARER = 0.5
"""How likely one more attempt with a fault is, compared with one fewer."""


def schedules(  # noqa: PLR0913 - all that may be drawn
    points: Sequence[Point],
    seconds: float,
    seed: int,
    kills_max: int = 3,
    faults: Sequence[Fault] = (),
    preludes: Sequence[Fault] = (),
    misdeeds: Sequence[Fault] = (),
) -> Iterator[Schedule]:
    """Random schedules without end, one fault in each attempt, and what is done before some.

    Args:
        points: where a plain kill may land; what a survey found.
        seconds: how long an undisturbed run takes.
        seed: the same one gives the same stream.
        kills_max: the most attempts that suffer a fault.
        faults: further ones to draw from, ready made: other actions than a plain kill.
        preludes: what may be done before a resume.
        misdeeds: what services may do to requests of the first attempt.

    Raises:
        ValueError: ``kills_max`` is less than 1.
    """
    if kills_max < 1:
        raise ValueError(f"a soak kills at least once: kills_max is {kills_max}")
    known = list(dict.fromkeys([*map(kill, points), *faults]))
    plain = _stream(_Draw(known, seconds, random.Random(f"soak {seed}")), kills_max)
    if not (preludes or misdeeds):
        return map(_beside, plain)
    others = random.Random(f"preludes {seed}")
    return (_prepared(schedule, preludes, misdeeds, others) for schedule in map(_beside, plain))


def _beside(schedule: Schedule) -> Schedule:
    """The same, with an attempt without a fault after each one that is paused."""
    attempts: list[tuple[Fault, ...]] = []
    for faults in schedule.attempts:
        attempts.append(faults)
        if any(isinstance(fault.action, Pause) for fault in faults):
            attempts.append(())
    return Schedule(tuple(attempts))


def _prepared(
    schedule: Schedule, preludes: Sequence[Fault], misdeeds: Sequence[Fault], rng: random.Random
) -> Schedule:
    """The same, with something done before some of its attempts, and before the one after."""
    attempts: list[tuple[Fault, ...]] = []
    for number, faults in enumerate((*schedule.attempts, ())):
        among, often = (preludes, PREPARED) if number else (misdeeds, MISLED)
        beside = number > 0 and any(
            isinstance(f.action, Pause) for f in schedule.attempts[number - 1]
        )
        chosen = [rng.choice(among)] if among and rng.random() < often else []
        # of several runners none is traced, so that none is met at a call
        alone = any(isinstance(f.action, Beside) or isinstance(f.point, CallPoint) for f in faults)
        if beside or alone:
            chosen = [f for f in chosen if not isinstance(f.action, Resumers)]
        attempts.append((*([] if beside else chosen), *faults))
    while attempts and not attempts[-1]:
        attempts.pop()
    return Schedule(tuple(attempts))


def _stream(draw: _Draw, kills_max: int) -> Iterator[Schedule]:
    decks = {n: _Deck(len(draw.known) ** n) for n in range(1, kills_max + 1)}
    while True:
        number = draw.number(list(decks))
        timed = [draw.is_timed() for _ in range(number)]
        if any(timed):
            yield _schedule([draw.moment() if t else draw.fault() for t in timed])
        else:
            number = number if decks[number].left else _refilled(draw, decks)
            yield _schedule(draw.hand(decks[number].deal(draw.rng), number))


def _refilled(draw: _Draw, decks: dict[int, _Deck]) -> int:
    """Another number of attempts, of which there are cards left; new decks where there are none."""
    if not any(deck.left for deck in decks.values()):
        for deck in decks.values():
            deck.refill()
    return draw.number([number for number, deck in decks.items() if deck.left])


def _schedule(faults: Sequence[Fault]) -> Schedule:
    return Schedule(tuple((fault,) for fault in faults))


class _Draw:
    """One seeded source of all that is drawn."""

    def __init__(self, known: Sequence[Fault], seconds: float, rng: random.Random) -> None:
        self.known = known
        self.rng = rng
        self._last_ms = max(1, int(seconds * 1000))

    def number(self, numbers: Sequence[int]) -> int:
        """One of the ``numbers`` of attempts."""
        # counted from the smallest: a high power of a half is 0, and one weight must not be
        weights = [RARER ** (number - numbers[0]) for number in numbers]
        return self.rng.choices(numbers, weights)[0]

    def is_timed(self) -> bool:
        """Whether the next fault hangs on a time."""
        return not self.known or self.rng.random() < TIMED

    def moment(self) -> Fault:
        """A plain kill at a random time."""
        return kill(TimePoint(self.rng.randint(1, self._last_ms)))

    def fault(self) -> Fault:
        """One of the known faults."""
        return self.rng.choice(self.known)

    def hand(self, card: int, number: int) -> list[Fault]:
        """The known faults, ``number`` of them, that the ``card`` stands for: its digits."""
        found = []
        for _ in range(number):
            card, digit = divmod(card, len(self.known))
            found.append(self.known[digit])
        return found


class _Deck:
    """The numbers below ``size`` in random order, each once; only what was dealt takes memory."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._moved: dict[int, int] = {}
        self.left = size

    def deal(self, rng: random.Random) -> int:
        """The next one: a shuffle by exchange (Fisher and Yates), made as far as it is needed."""
        place = rng.randrange(self.left)
        self.left -= 1
        last = self._moved.pop(self.left, self.left)
        if place == self.left:
            return last
        dealt = self._moved.get(place, place)
        self._moved[place] = last
        return dealt

    def refill(self) -> None:
        """All of them again, once all were dealt."""
        self.left = self._size
