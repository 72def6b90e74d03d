"""From the lines of the ledger table to effects: pure, and the only reader of their format.

An effect is a change that somebody asked for. So these are left out: a value that the database
made up itself (an assigned INTEGER PRIMARY KEY, a default from the clock), and a write that left
everything as it was, which is what an upsert or ``INSERT OR REPLACE`` does the second time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from chaoskit.model.effects import Effect, flatten
from fake_services.database.schema import Table
from fake_services.texts import shortened

SERVICE = "database"

Value = str | int | float | bytes | None
Row = Mapping[str, Value]

_WHO = (
    "name", "email", "recipient", "customer", "customer_id", "user", "user_id",
    "order", "order_id", "title", "id", "key",
)  # fmt: skip
"""Columns that say whom or what a row is about, the best one first."""

ROWS_KEPT = 1 << 16
"""Rows whose decoding is remembered: trial after trial writes the same ones."""

VERBS = {"insert": "inserted", "update": "updated", "delete": "deleted"}
"""The kinds of bookings, and how a report says them."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the ledger table.

    ``text`` is its row, encoded; ``was_text`` the row before an update. ``assigned`` says whether
    an inserted row's INTEGER PRIMARY KEY was made up by SQLite; None where nobody could see that.
    """

    kind: str
    table: str
    text: str
    was_text: str | None = None
    assigned: bool | None = None

    @property
    def row(self) -> Row:
        """The row as it is now, or was before it was deleted."""
        return decode_row(self.text)

    @property
    def was(self) -> Row | None:
        """The row before an update."""
        return None if self.was_text is None else decode_row(self.was_text)


@dataclass(frozen=True, slots=True)
class _Live:
    row: Row
    assigned: bool


class Books:
    """Turns entries into effects, in the order in which they were booked.

    It keeps the rows that exist by their unique keys. Two rows cannot share one, so an insert
    whose key is there already has replaced that row, although no trigger saw it go.

    Args:
        tables: the layouts now; `learn` adds later ones.
        rows: those that exist before the first entry, by table.
    """

    def __init__(self, tables: Iterable[Table], rows: Iterable[tuple[str, Row]] = ()) -> None:
        self._tables = {table.name: table for table in tables}
        self._live: dict[tuple[object, ...], _Live] = {}
        for name, row in rows:
            self._enter(self._table(name, row), _Live(row, assigned=False))

    def learn(self, tables: Iterable[Table]) -> None:
        """Take new layouts over the old ones."""
        self._tables.update((table.name, table) for table in tables)

    def read(self, entries: Iterable[Entry]) -> list[Effect]:
        """The effects of ``entries``, which follow those of the call before."""
        return [effect for entry in entries for effect in self._effects(entry)]

    def _effects(self, entry: Entry) -> Iterable[Effect]:
        table = self._table(entry.table, entry.row)
        if entry.kind == "delete":
            gone = self._leave(table, entry.row)
            yield _effect(table, "delete", _Live(entry.row, any(old.assigned for old in gone)))
            return
        if entry.kind == "update" and entry.was is not None:
            known = self._leave(table, entry.was)
            assigned = any(old.assigned for old in known)
            # An UPDATE OR REPLACE may have taken other rows' places, too.
            replaced = [_Live(entry.was, assigned), *self._leave(table, entry.row)]
        else:
            replaced = self._leave(table, entry.row)
            assigned = entry.assigned if entry.assigned is not None else table.autoincrement
            assigned = assigned or any(old.assigned for old in replaced)
        live = _Live(entry.row, assigned)
        self._enter(table, live)
        for lost in replaced[1:]:
            yield _effect(table, "delete", lost)
        if not replaced:
            yield _inserted(table, entry.text, assigned)
        elif _asked(table, live) != _asked(table, replaced[0]):
            yield _effect(table, "update", live, replaced[0])

    def _table(self, name: str, row: Row) -> Table:
        # A table that was dropped since is only known from its rows.
        return self._tables.get(name) or Table(name, tuple(row))

    def _enter(self, table: Table, live: _Live) -> None:
        for key in _keys(table, live.row):
            self._live[key] = live

    def _leave(self, table: Table, row: Row) -> list[_Live]:
        """Take out every row that shares a unique key with ``row``."""
        found: list[_Live] = []
        for key in _keys(table, row):
            live = self._live.get(key)
            if live is not None and live not in found:
                found.append(live)
        for live in found:
            for key in _keys(table, live.row):
                self._live.pop(key, None)
        return found


@lru_cache(maxsize=ROWS_KEPT)
def decode_row(text: str) -> Row:
    """The row that `fake_services.database.triggers.row_json` wrote."""
    chunks: Sequence[Mapping[str, str | int | None]] = json.loads(text)
    return {name: _decoded(value) for chunk in chunks for name, value in chunk.items()}


def in_words(value: Value) -> str:
    """A value as the fields of an effect show it; long ones by head and digest."""
    if value is None:
        return ""
    return shortened(f"x'{value.hex()}'" if isinstance(value, bytes) else str(value))


def _decoded(value: str | int | None) -> Value:
    if not isinstance(value, str):
        return value
    kind, text = value[0], value[2:]
    if kind == "r":
        return float(text)
    return bytes.fromhex(text) if kind == "b" else text


def _keys(table: Table, row: Row) -> Iterable[tuple[object, ...]]:
    for number, columns in enumerate(table.unique):
        values = tuple(row.get(column) for column in columns)
        if None not in values:  # nothing is equal to NULL
            yield (table.name, number, *values)


def _asked(table: Table, live: _Live) -> dict[str, str]:
    """The columns that the writer decided on; all of them if there would be none."""
    made_up = table.varying | ({table.rowid_alias} if live.assigned else frozenset())
    asked = {name: value for name, value in live.row.items() if name not in made_up}
    return {name: in_words(value) for name, value in (asked or live.row).items()}


def _effect(table: Table, kind: str, live: _Live, was: _Live | None = None) -> Effect:
    asked = _asked(table, live)
    fields: dict[str, object] = dict(asked)
    if was is not None:
        before = _asked(table, was)
        fields["was"] = {n: before.get(n, "") for n in asked if before.get(n, "") != asked[n]}
    return Effect(
        service=SERVICE,
        kind=f"{table.name}.{kind}",
        fields=flatten(fields),
        who=who_of(live.row),
        what=f"row {VERBS[kind]} in {table.name}",
        ref=", ".join(in_words(live.row.get(column)) for column in table.primary_key),
    )


@lru_cache(maxsize=ROWS_KEPT)
def _inserted(table: Table, text: str, assigned: bool) -> Effect:  # noqa: FBT001 - one fact
    return _effect(table, "insert", _Live(decode_row(text), assigned))


def who_of(row: Row) -> str:
    """Whom or what a row is about, as far as its columns' names tell; else its first value."""
    by_name = {name.lower(): value for name, value in row.items()}
    best = next((name for name in _WHO if by_name.get(name) is not None), None)
    return in_words(by_name[best] if best else next(iter(row.values()), None))
