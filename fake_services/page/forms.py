"""The JSON of the page: frozen values, each documented in docs/serve.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

Pairs = Sequence[tuple[str, str]]
"""Names and values, in an order to read them in."""


class EffectLine(msgspec.Struct, frozen=True, kw_only=True):
    """An effect in a list. ``state`` is how far the thing is that it made, as of now."""

    number: int
    at_s: float
    service: str
    kind: str
    what: str
    who: str
    key: str
    ref: str
    state: str
    same_as: int | None
    request: int | None


class RequestLine(msgspec.Struct, frozen=True, kw_only=True):
    """A request in a list. ``outcome`` says in words what has come of it."""

    number: int
    at_s: float
    service: str
    operation: str
    key: str
    status: int | None
    effects: int
    effect: int | None
    outcome: str


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    """A window of effects, oldest first; ``total`` is how many fit the filter."""

    total: int
    start: int
    rows: Sequence[EffectLine]


class Requests(msgspec.Struct, frozen=True, kw_only=True):
    """A window of requests, oldest first; ``total`` is how many fit the filter and are kept."""

    total: int
    start: int
    rows: Sequence[RequestLine]


class Text(msgspec.Struct, frozen=True):
    """A text of several lines; ``chars`` is its whole length, of which a part may be shown."""

    title: str
    text: str
    chars: int


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """One effect: what its caller asked for (``fields``), and what it made (``facts``, ``texts``),
    as that is now.
    """

    line: EffectLine
    fields: Pairs
    facts: Pairs
    texts: Sequence[Text]
    left_out: int


class TableRows(msgspec.Struct, frozen=True, kw_only=True):
    """A window of a table's rows; None is NULL."""

    table: str
    total: int
    start: int
    columns: Sequence[str]
    rows: Sequence[Sequence[str | None]]


class Tables(msgspec.Struct, frozen=True):
    """The tables of the database."""

    tables: Sequence[str]


class Behaves(msgspec.Struct, frozen=True, kw_only=True):
    """What may stand in a behaviour: operations with how often they were asked for, and kinds."""

    service: str
    operations: Mapping[str, int]
    kinds: Sequence[str]


class ServiceState(msgspec.Struct, frozen=True, kw_only=True):
    """A service. ``clock_s`` is how far its clock was moved on, None where it has none;
    ``waiting`` how many requests were cut off and are still to be carried out.
    """

    name: str
    environment: Mapping[str, str]
    effects: int
    requests: int
    waiting: int
    clock_s: float | None
    behaves: Behaves | None
    has_tables: bool
    trouble: str


class BehaviourState(msgspec.Struct, frozen=True, kw_only=True):
    """A behaviour that was switched on once. ``past``: the request that it names has been."""

    behaviour: str
    meaning: str
    on: bool
    past: bool


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Everything at a glance. ``version`` grows with each change; ``serving`` differs between two
    servings, so that a page notices that it belongs to another one.
    """

    version: int
    serving: str
    now_s: float
    effects: int
    same_again: int
    requests: int
    requests_kept: int
    services: Sequence[ServiceState]
    behaviours: Sequence[BehaviourState]


class Problem(msgspec.Struct, frozen=True):
    """Why something was refused."""

    error: str
