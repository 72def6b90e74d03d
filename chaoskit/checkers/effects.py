"""duplicate_effect, lost_effect, false_success and wrong_inputs: the world's books against the
contract.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chaoskit.checkers.binding import mixtures
from chaoskit.checkers.comparison import (
    Seen,
    compare,
    counted,
    difference,
    in_words,
    is_drawn,
    nearest,
    still_taken,
    subject,
    times,
)
from chaoskit.checkers.outputs import lost_output
from chaoskit.model.effects import Effect, Identity
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Finding
from chaoskit.model.history import History

STILL_TAKEN = "still taken"
"""What is seen of a row that is not freed."""


def duplicate_effect(history: History, expectation: Expectation) -> Iterator[Finding]:
    """Effects that happened more often than an undisturbed run has them, where that is not
    allowed.
    """
    for identity, expected, seen in compare(history, expectation).extra:
        if expectation.contract.guarantee(identity.operation) == "at-least-once":
            continue
        effect = seen[-1][1].effect
        yield Finding(
            kind="duplicate_effect",
            operation=identity.operation,
            subject=subject(identity),
            expected=f"{effect.in_words()}: {times(expected)}",
            seen=times(len(seen)),
            because=f"{_by_attempt(seen)}{_keys(seen)}",
            witness=tuple(index for index, _ in seen),
        )


def wrong_inputs(history: History, expectation: Expectation) -> Iterator[Finding]:
    """Effects with values that no undisturbed run has, or not together.

    Those that take all their values from two expected effects are bound wrongly instead.
    """
    bound = {mixture.identity for mixture in mixtures(history, expectation)}
    for identity, seen in compare(history, expectation).strange:
        if identity in bound:
            continue
        effect = seen[0][1].effect
        yield Finding(
            kind="wrong_inputs",
            operation=identity.operation,
            subject=subject(identity),
            expected=f"{effect.in_words()}: never",
            seen=times(len(seen)),
            because=f"attempt {seen[0][1].attempt} did it; {_likeness(effect, expectation)}",
            witness=tuple(index for index, _ in seen),
        )


def _likeness(effect: Effect, expectation: Expectation) -> str:
    """What an undisturbed run has in place of a strange effect: the same one at another service,
    the one that is most like it, or nothing.
    """
    for other in expectation.effects:
        same = (other.kind, other.fields) == (effect.kind, effect.fields)
        if same and other.service != effect.service:
            return f"an undisturbed run does it as {other.operation}"
    near = nearest(effect, expectation.effects)
    if near is None:
        return f"no undisturbed run has any {effect.operation}"
    return f"it is like {near.in_words()!r}, but {difference(effect, near)}"


def lost_effect(history: History, expectation: Expectation) -> Iterator[Finding]:
    """Expected effects that never happened although the task went on past them to success."""
    yield from _not_freed(history, expectation)
    yield from _too_few(history, expectation)
    tail = _tail(history, expectation)
    for identity, expected, seen in _missing(history, expectation):
        if identity in tail:
            continue
        words = in_words(identity, expectation)
        yield Finding(
            kind="lost_effect",
            operation=identity.operation,
            subject=subject(identity),
            expected=f"{words}: {times(expected)}",
            seen=times(len(seen)),
            because=f"attempt {history.claim[1].attempt} ended with success and went past it",
            witness=(*(index for index, _ in seen), history.claim[0]),
        )


def _too_few(history: History, expectation: Expectation) -> Iterator[Finding]:
    """Of operations whose effects the task draws: fewer than an undisturbed run has, whichever."""
    if not history.completed:
        return
    drawn = {i.operation for i in expectation.counts if is_drawn(i.operation, expectation)}
    for operation in sorted(drawn):
        wanted = sum(n for i, n in expectation.counts.items() if i.operation == operation)
        seen = sum(
            expectation.identify(b.effect).operation == operation for _, b in history.effects
        )
        if seen < wanted:
            index, claim = history.claim
            yield Finding(
                kind="lost_effect",
                operation=operation,
                subject="number",
                expected=f"{operation}: {times(wanted)}, whichever are drawn",
                seen=times(seen),
                because=f"attempt {claim.attempt} ended with success",
                witness=(index,),
            )


def _not_freed(history: History, expectation: Expectation) -> Iterator[Finding]:
    """Rows that undisturbed runs free again, and that are still taken at a claimed success."""
    for index, body in still_taken(history, expectation):
        effect = body.effect
        yield Finding(
            kind="lost_effect",
            operation=effect.operation,
            subject=f"{effect.table} {effect.ref}: freed",
            expected=f"{effect.in_words()}: freed again at the end",
            seen=STILL_TAKEN,
            because=f"attempt {body.attempt} changed it last, and ended with success",
            witness=(index, history.claim[0]),
        )


def false_success(history: History, expectation: Expectation) -> Iterator[Finding]:
    """Success was claimed while the end of the work had not been done, or an output is lost."""
    yield from lost_output(history, expectation)
    tail = _tail(history, expectation)
    missing = [entry for entry in _missing(history, expectation) if entry[0] in tail]
    if not missing:
        return
    index, claim = history.claim
    identity, expected, seen = missing[0]
    more = len(missing) - 1
    others = f" and {counted(more, 'more effect')} after it" if more else ""
    yield Finding(
        kind="false_success",
        operation=identity.operation,
        subject=subject(identity),
        expected=f"{in_words(identity, expectation)}: {times(expected)}{others}",
        seen=times(len(seen)),
        because=f"attempt {claim.attempt} ended with success before the end was done",
        witness=(index,),
    )


def _missing(
    history: History, expectation: Expectation
) -> list[tuple[Identity, int, Sequence[Seen]]]:
    """What is missing at a claimed success and was promised to happen."""
    if not history.completed:
        return []
    bound = {mixture.identity: mixture.owner for mixture in mixtures(history, expectation)}
    strange = [
        near
        for identity, seen in compare(history, expectation).strange
        if identity not in bound
        and (near := nearest(seen[0][1].effect, expectation.effects)) is not None
    ]
    taken = {*bound.values(), *map(expectation.identify, strange)}
    return [
        (identity, expected, seen)
        for identity, expected, seen in compare(history, expectation).missing
        if expectation.contract.guarantee(identity.operation) != "at-most-once"
        and identity not in taken  # it happened with wrong values: one fault, one finding
    ]


def _tail(history: History, expectation: Expectation) -> set[Identity]:
    """The missing effects after which nothing expected has happened.

    Where each record comes before its effect, or where there is one effect only, the last one is
    lost like any other; and so is a row that was deleted to be inserted again.

    Effects that no request carried (a database's) are booked when the attempt is over, so their
    place among the requests is unknown; each of the two kinds is looked at by itself.
    """
    if not expectation.ordered or expectation.record_first or len(expectation.order) == 1:
        return set()
    if not compare(history, expectation).missing:
        return set()
    seen = compare(history, expectation).seen
    carried = {identity for identity, _ in expectation.requests}
    tail: set[Identity] = set()
    for mine in (carried, set(expectation.counts) - carried):
        order = [identity for identity in expectation.order if identity in mine]
        for identity in reversed(order):
            if identity in seen or deleted(identity, history, expectation):
                break
            tail.add(identity)
    return tail


def deleted(identity: Identity, history: History, expectation: Expectation) -> bool:
    """Whether the row that was to be inserted had been deleted in a transaction of its own."""
    effect = expectation.sample(identity)
    table, _, verb = identity.operation.rpartition(".")
    return (
        verb == "insert"
        and effect is not None
        and bool(effect.ref)
        and any(
            (body.effect.operation, body.effect.ref) == (f"{table}.delete", effect.ref)
            for _, body in history.effects
        )
    )


def _by_attempt(seen: Sequence[Seen]) -> str:
    attempts = [body.attempt for _, body in seen]
    if len(set(attempts)) == 1:
        return f"attempt {attempts[0]} did it {times(len(seen))}"
    return "attempts " + " and ".join(map(str, attempts)) + " each did it"


def _keys(seen: Sequence[Seen]) -> str:
    keys = [_key(body.effect) for _, body in seen]
    if not any(keys):
        return "; without an idempotency key" if _keyed(seen[0][1].effect) else ""
    if len(set(keys)) == 1:
        return f"; each with the same key {keys[0]}"
    return "; with the keys " + " and ".join(key or "(none)" for key in keys)


def _key(effect: Effect) -> str:
    return effect.key or ""


def _keyed(effect: Effect) -> bool:
    """Whether the service of this effect could have taken a key (a table's rows cannot)."""
    return bool(effect.ref)
