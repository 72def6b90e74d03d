"""What the page shows of the books: pure functions from what was noted to JSON-able values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from chaoskit.model.behaviours import Behaviour, BehaviourKind
from chaoskit.model.effects import Fields, flatten
from fake_services.page.chronicle import Asked, Noted
from fake_services.page.forms import (
    BehaviourState,
    Detail,
    EffectLine,
    Effects,
    RequestLine,
    Requests,
    TableRows,
    Text,
)
from fake_services.page.safe import line, lines, value
from fake_services.shown import Rows, Shown

WINDOW_MOST = 200
"""So many lines are in one answer."""

FIELDS_MOST = 200
"""So many fields of one thing are shown."""

SEARCHED_MOST = 1_000
"""A filter looks at so many characters of an effect's fields."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Which part of a list: what holds every one of ``words``, of that ``limit`` after ``start``.

    ``service`` empty: of all services.
    """

    service: str = ""
    words: str = ""
    start: int = 0
    limit: int = 100


MEANINGS: Mapping[BehaviourKind, str] = {
    "lose-reply": "is applied, and its connection cut",
    "fail-after-commit": "is applied, and answered with an error",
    "late-reply": "is applied at once, and answered late",
    "apply-twice": "is applied twice, as by a service at fault",
    "forget-keys": "is not looked up by its idempotency key",
    "commit-late": "is cut off, and applied later",
    "reject": "is refused, and not applied",
    "down": "begins an outage: this and the following requests are refused",
    "lag": "does not find what was applied last",
    "fence": "is refused where its fencing token is older than one seen",
}
"""What comes of a request that a behaviour meets."""


def effects(
    noted: Sequence[Noted],
    state_of: Callable[[Noted], str],
    text_of: Callable[[Noted], str],
    cut: Cut,
) -> Effects:
    """A window of effects.

    Args:
        noted: in order.
        state_of: how far the thing is that an effect made.
        text_of: what the filter looks at, as `searched`.
        cut: which of them.
    """
    fitting = _fitting(noted, cut.words, text_of)
    start, limit = cut.start, cut.limit
    window = fitting[start : start + min(limit, WINDOW_MOST)]
    rows = [effect_line(one, state_of(one)) for one in window]
    return Effects(total=len(fitting), start=start, rows=rows)


def effect_line(noted: Noted, state: str) -> EffectLine:
    """An effect in a list."""
    effect = noted.effect
    return EffectLine(
        number=noted.number,
        at_s=noted.at_s,
        service=effect.service,
        kind=line(effect.kind),
        what=line(effect.what or effect.operation),
        who=line(effect.who),
        key=line(effect.key or ""),
        ref=line(effect.ref),
        state=line(state),
        same_as=noted.same_as,
        request=noted.request,
    )


def requests(asked: Sequence[Asked], cut: Cut) -> Requests:
    """A window of requests, which are given in order."""
    fitting = _fitting(asked, cut.words, _request_words)
    start, limit = cut.start, cut.limit
    window = fitting[start : start + min(limit, WINDOW_MOST)]
    return Requests(total=len(fitting), start=start, rows=[request_line(one) for one in window])


def request_line(asked: Asked) -> RequestLine:
    """A request in a list."""
    return RequestLine(
        number=asked.number,
        at_s=asked.at_s,
        service=asked.service,
        operation=asked.operation,
        key=line(asked.key or ""),
        status=asked.status,
        effects=asked.effects,
        effect=asked.effect,
        outcome=outcome(asked),
    )


def outcome(asked: Asked) -> str:
    """In words, what has come of a request so far."""
    if asked.landed:
        return "cut off, carried out later"
    if asked.status is None:
        return "not answered yet"
    if not asked.delivered:
        return "applied, the answer lost" if asked.effects else "cut off"
    if asked.deduped:
        return "a repeat: answered as before"
    if asked.status >= 400:
        return "applied, answered with an error" if asked.effects else "refused"
    return "done"


def detail(noted: Noted, shown: Shown | None) -> Detail:
    """One effect, with the thing that it made, if its service can show that."""
    facts = flatten_in_order(shown.facts) if shown is not None else ()
    texts = shown.texts if shown is not None else ()
    fields = noted.effect.fields
    left_out = max(0, len(fields) - FIELDS_MOST) + max(0, len(facts) - FIELDS_MOST)
    return Detail(
        line=effect_line(noted, shown.state if shown is not None else ""),
        fields=_pairs(fields),
        facts=_pairs(facts),
        texts=[Text(line(title), lines(text), len(text)) for title, text in texts],
        left_out=left_out,
    )


def flatten_in_order(values: Mapping[str, object]) -> Fields:
    """As `flatten`, but with the members of ``values`` in their own order, and truth as in JSON."""
    return tuple(
        pair
        for name, one in values.items()
        for pair in flatten({name: str(one).lower() if isinstance(one, bool) else one})
    )


def table(name: str, start: int, rows: Rows) -> TableRows:
    """Some rows of a table; a column whose name says that it is secret is blotted out."""
    return TableRows(
        table=line(name),
        total=rows.total,
        start=start,
        columns=[line(column) for column in rows.columns],
        rows=[
            [
                None if cell is None else value(column.lower(), cell)
                for column, cell in zip(rows.columns, row, strict=True)
            ]
            for row in rows.rows
        ],
    )


def behaviour(one: Behaviour, asked_for: Mapping[str, int], *, on: bool) -> BehaviourState:
    """A behaviour, whether it is switched on, and whether its request has been.

    Args:
        one: the behaviour.
        asked_for: how often each operation of its service was asked for.
        on: whether it is switched on.
    """
    so_far = sum(times for name, times in asked_for.items() if one.covers(name))
    return BehaviourState(
        behaviour=str(one),
        meaning=meaning(one),
        on=on,
        past=one.ordinal is not None and so_far >= one.ordinal,
    )


def meaning(one: Behaviour) -> str:
    """A behaviour as a sentence."""
    which = "each" if one.ordinal is None else f"number {one.ordinal} of"
    until = "until the end" if one.amount is None else str(one.amount)
    more = {
        "late-reply": f" ({until} ms)",
        "commit-late": " (when they are let land)"
        if one.amount is None
        else f" (after {until} more)",
        "reject": f" (with {until})",
        "down": f" ({until if one.amount is None else f'{until} in all'})",
        "lag": f" (by {until})",
    }.get(one.kind, "")
    return f"{which} {one.service}.{one.operation} {MEANINGS[one.kind]}{more}"


def _fitting(items: Sequence[T], words: str, text_of: Callable[[T], str]) -> Sequence[T]:
    wanted = words.lower().split()
    if not wanted:
        return items
    return [one for one in items if all(word in text_of(one) for word in wanted)]


def searched(noted: Noted) -> str:
    """What a filter looks at, in small letters: what the page shows, so that it does not tell what
    the page hides.
    """
    shown = effect_line(noted, "")
    head = (shown.service, shown.kind, shown.what, shown.who, shown.key, shown.ref)
    fields: list[str] = []
    room = SEARCHED_MOST
    for name, text in noted.effect.fields:
        if room <= 0:
            break
        fields.append(value(name, text)[:room])
        room -= len(fields[-1])
    return " ".join((*head, *fields)).lower()


def _request_words(asked: Asked) -> str:
    status = "" if asked.status is None else asked.status
    key = line(asked.key or "")
    return f"{asked.service}.{asked.operation} {key} {status} {outcome(asked)}".lower()


def _pairs(fields: Fields) -> list[tuple[str, str]]:
    return [(line(name), value(name, text)) for name, text in fields[:FIELDS_MOST] if text]
