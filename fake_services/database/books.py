"""From the lines of the ledger table to effects: pure, and the only reader of their format.

An effect is a change that somebody asked for. So these are left out: a value that the database
made up itself (an assigned INTEGER PRIMARY KEY, a default from the clock), and a write that left
everything as it was, which is what an upsert or ``INSERT OR REPLACE`` does the second time. A
transaction is one write: what it deletes and inserts again as it was is no effect.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from chaoskit.model.effects import Effect, flatten
from fake_services.database.folding import Change, fold
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

BEGIN, ANEW = "begin", "anew"
"""Lines that are no change: a transaction begins; a table's rows now follow, whatever it held."""

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
    table: Table
    row: Row
    assigned: bool
    text: str = ""


_Change = Change[_Live]


class Books:
    """Turns entries into effects, transaction by transaction, in the order of the entries.

    It keeps the rows that exist. Two rows cannot share a unique key, so an insert whose key is
    there already has replaced that row, although no trigger saw it go.

    The first entry of a transaction is of the kind ``begin``. Of a file without those each entry
    is by itself. A table that is not among ``tables`` was made by the task: its first rows are
    those at the end of an attempt, so that later attempts are looked at as a whole, too.

    Args:
        tables: the layouts now; `learn` adds later ones.
        rows: those that exist before the first entry, by table.
    """

    def __init__(self, tables: Iterable[Table], rows: Iterable[tuple[str, Row]] = ()) -> None:
        self._tables = {table.name: table for table in tables}
        self._declared = frozenset(self._tables)
        self._live: dict[tuple[object, ...], list[_Live]] = {}
        self._begun = False
        for name, row in rows:
            self._enter(_Live(self._table(name, row), row, assigned=False))

    def learn(self, tables: Iterable[Table]) -> None:
        """Take new layouts over the old ones."""
        self._tables.update((table.name, table) for table in tables)

    def read(self, entries: Iterable[Entry]) -> list[Effect]:
        """The effects of ``entries``, which follow those of the call before."""
        effects: list[Effect] = []
        unit: list[_Change] = []
        attempt: list[_Change] = []
        anew: set[str] = set()
        for entry in entries:
            if entry.kind == BEGIN or not self._begun:
                effects += _folded(unit)
                unit = []
            if entry.kind == BEGIN:
                self._begun = True
            elif entry.kind == ANEW:
                anew.add(entry.table)
                attempt += self._forgotten(entry.table)
            elif entry.table in self._declared and entry.table not in anew:
                unit += self._changes(entry)
            else:
                attempt += self._changes(entry)
        return [*effects, *_folded(unit), *_folded(attempt)]

    def _changes(self, entry: Entry) -> list[_Change]:
        """What an entry says of the rows, those that no trigger saw go first."""
        table = self._table(entry.table, entry.row)
        if entry.kind == "delete":
            return [Change(self._taken(table, entry.row), None)]
        if entry.kind == "update" and entry.was is not None:
            was = self._taken(table, entry.was)
            # An UPDATE OR REPLACE may have taken other rows' places, too.
            replaced = [was, *self._replaced(table, entry.row)]
            assigned = was.assigned
        else:
            replaced = self._replaced(table, entry.row)
            assigned = entry.assigned if entry.assigned is not None else table.autoincrement
            assigned = assigned or any(old.assigned for old in replaced)
        live = _Live(table, entry.row, assigned, entry.text)
        self._enter(live)
        return [
            *(Change(lost, None) for lost in replaced[1:]),
            Change(replaced[0] if replaced else None, live),
        ]

    def _table(self, name: str, row: Row) -> Table:
        # A table that was dropped since is only known from its rows.
        return self._tables.get(name) or Table(name, tuple(row))

    def _enter(self, live: _Live) -> None:
        for key in _places(live.table, live.row):
            self._live.setdefault(key, []).append(live)

    def _leave(self, live: _Live) -> None:
        for key in _places(live.table, live.row):
            there = self._live.get(key, [])
            if live in there:
                there.remove(live)
            if not there:
                self._live.pop(key, None)

    def _replaced(self, table: Table, row: Row) -> list[_Live]:
        """Take out every row that shares a unique key with ``row``."""
        found = [live for key in _keys(table, row) for live in self._live.get(key, ())]
        gone = list({id(live): live for live in found}.values())
        for live in gone:
            self._leave(live)
        return gone

    def _taken(self, table: Table, row: Row) -> _Live:
        """Take out the row that a trigger saw go."""
        for key in _places(table, row):
            if there := self._live.get(key):
                assigned = any(live.assigned for live in there[-1:])
                self._leave(there[-1])
                return _Live(table, row, assigned)
        return _Live(table, row, assigned=False)

    def _forgotten(self, name: str) -> list[_Change]:
        """Take out every row of a table: what it holds now is told next."""
        rows = {id(live): live for there in self._live.values() for live in there}
        gone = [live for live in rows.values() if live.table.name == name]
        for live in gone:
            self._leave(live)
        return [Change(live, None) for live in gone]


def _folded(unit: Sequence[_Change]) -> Iterable[Effect]:
    """The effects of one transaction."""
    if any(change.was is not None for change in unit):  # inserts alone leave nothing to fold
        alike = [(_as_asked, _as_asked), (_without_id, _without_made_up_id)]
        unit = fold(unit, lambda live: (live.table.name, *live.row.items()), alike, _lasting_keys)
    for was, now in ((change.was, change.now) for change in unit):
        if now is None:
            assert was is not None
            yield _effect("delete", was)
        elif was is None:
            yield _inserted(now.table, now.text, now.assigned)
        else:
            yield _effect("update", now, was)


def _as_asked(live: _Live) -> Hashable:
    return live.table.name, *_asked(live).items()


def _without_id(live: _Live) -> Hashable:
    alias = live.table.rowid_alias
    return live.table.name, *(pair for pair in _asked(live).items() if pair[0] != alias)


def _without_made_up_id(live: _Live) -> Hashable:
    return _without_id(live) if live.assigned else id(live)


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


def _keys(table: Table, row: Row, but: tuple[str, ...] = ()) -> Iterable[tuple[object, ...]]:
    for number, columns in enumerate(table.unique):
        values = tuple(row.get(column) for column in columns)
        if None not in values and columns != but:  # nothing is equal to NULL
            yield (table.name, number, *values)


def _places(table: Table, row: Row) -> list[tuple[object, ...]]:
    """Where a row is kept: at each of its unique keys, or at all that it holds."""
    return list(_keys(table, row)) or [(table.name, -1, *row.items())]


def _lasting_keys(live: _Live) -> Iterable[tuple[object, ...]]:
    """The keys that the writer chose: an id that SQLite made up says nothing of the row."""
    alias = live.table.rowid_alias
    return _keys(live.table, live.row, (alias,) if live.assigned and alias else ())


def _asked(live: _Live) -> dict[str, str]:
    """The columns that the writer decided on; all of them if there would be none."""
    table = live.table
    made_up = table.varying | ({table.rowid_alias} if live.assigned else frozenset())
    asked = {name: value for name, value in live.row.items() if name not in made_up}
    return {name: in_words(value) for name, value in (asked or live.row).items()}


def _effect(kind: str, live: _Live, was: _Live | None = None) -> Effect:
    asked = _asked(live)
    fields: dict[str, object] = dict(asked)
    if was is not None:
        before = _asked(was)
        fields["was"] = {n: before.get(n, "") for n in asked if before.get(n, "") != asked[n]}
    name = live.table.name
    return Effect(
        service=SERVICE,
        kind=f"{name}.{kind}",
        fields=flatten(fields),
        who=who_of(live.row),
        what=f"row {VERBS[kind]} in {name}",
        ref=", ".join(in_words(live.row.get(column)) for column in live.table.primary_key),
    )


@lru_cache(maxsize=ROWS_KEPT)
def _inserted(table: Table, text: str, assigned: bool) -> Effect:  # noqa: FBT001 - one fact
    return _effect("insert", _Live(table, decode_row(text), assigned))


def who_of(row: Row) -> str:
    """Whom or what a row is about, as far as its columns' names tell; else its first value."""
    by_name = {name.lower(): value for name, value in row.items()}
    best = next((name for name in _WHO if by_name.get(name) is not None), None)
    return in_words(by_name[best] if best else next(iter(row.values()), None))
