"""out_of_order_effect: what concerns one person or thing happened in another order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from chaoskit.checkers.comparison import in_words, subject
from chaoskit.model.effects import Identity
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Finding
from chaoskit.model.history import History

Place = tuple[Identity, int]
"""An effect and the how manieth of its identity it is."""


def out_of_order_effect(history: History, expectation: Expectation) -> Iterator[Finding]:
    """Effects of one operation on one subject, the earlier one booked after the later one.

    Only where undisturbed runs have one fixed order. What was done more often than expected is
    another finding; its repeats have no place in the order. Effects that no request carried (a
    database's) are booked when an attempt is over, so that their order is not known.
    """
    if not expectation.ordered:
        return
    places = _places(expectation)
    latest: dict[tuple[str, str], tuple[int, int, Identity]] = {}
    asked: Counter[Identity] = Counter()
    for index, body in history.effects:
        identity = expectation.identify(body.effect)
        asked[identity] += 1
        place = places.get((identity, asked[identity]))
        if body.request is None or not body.effect.who or place is None:
            continue
        line = (identity.operation, body.effect.who)
        before = latest.get(line)
        if before is None or before[0] < place:
            latest[line] = (place, index, identity)
            continue
        yield Finding(
            kind="out_of_order_effect",
            operation=identity.operation,
            subject=subject(identity),
            expected=f"{in_words(identity, expectation)}: before what comes later",
            seen=f"after {in_words(before[2], expectation)}",
            because=f"attempt {body.attempt} did it at event {index}, and what follows it in every "
            f"undisturbed run was there since event {before[1]}",
            witness=(before[1], index),
        )


def _places(expectation: Expectation) -> Mapping[Place, int]:
    """Where each expected effect stands in the order."""
    met: Counter[Identity] = Counter()
    places: dict[Place, int] = {}
    for number, identity in enumerate(expectation.order):
        met[identity] += 1
        places[identity, met[identity]] = number
    return places
