"""From the lines of the ledger in a PostgreSQL database to effects.

An effect is a change that somebody asked for. So a column that the database fills by itself (from
a sequence, the clock or chance) is left out, also where the writer gave a value, which no trigger
can tell; and so is a write that left everything else as it was. A transaction is one write: what it
deletes and inserts again as it was is no effect.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from chaoskit.model.effects import Effect, flatten
from fake_services.database.books import SERVICE, VERBS, in_words, who_of
from fake_services.database.folding import Change, fold
from fake_services.postgres.client import Client, SqlError, literal
from fake_services.shown import Rows

_MADE_UP = re.compile(
    r"\b(?:nextval|now|random|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday)"
    r"\(|\bCURRENT_|\bLOCALTIME|\buuid_generate|\bgen_random",
    re.IGNORECASE,
)

_LAYOUTS = """
SELECT chaoskit.name_of(n.nspname, c.relname), a.attname,
    a.attidentity <> '' OR a.attgenerated <> '', coalesce(pg_get_expr(d.adbin, d.adrelid), ''),
    coalesce(array_position(i.indkey::int2[], a.attnum), -1)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
WHERE c.relkind IN ('r', 'p')
    AND n.nspname NOT IN ('chaoskit', 'pg_catalog', 'information_schema')
ORDER BY 1, a.attnum
"""


@dataclass(frozen=True, slots=True)
class Layout:
    """What the books need to know of a table: which columns the database fills, and its key."""

    made_up: frozenset[str] = frozenset()
    key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the ledger: who wrote it in which transaction, and the row now and (for an update)
    before.
    """

    seq: int
    backend: int
    tx: str
    kind: str
    table: str
    row: Mapping[str, object]
    was: Mapping[str, object] | None


def entries_after(client: Client, seq: int, backend: int | None = None) -> list[Entry]:
    """The bookings after the one numbered ``seq``, of all connections or of one server process."""
    whose = "" if backend is None else f" AND backend = {backend}"
    rows = client.query(
        'SELECT seq, backend, tx, kind, table_name, "row", was '  # noqa: S608 - numbers only
        f"FROM chaoskit.ledger WHERE seq > {seq}{whose} ORDER BY seq"
    )
    return [
        Entry(
            int(n or 0),
            int(pid or 0),
            tx or "",
            kind or "",
            table or "",
            _row(row) or {},
            _row(was),
        )
        for n, pid, tx, kind, table, row, was in rows
    ]


def layouts(client: Client) -> dict[str, Layout]:
    """Every table whose rows are booked, by name."""
    made_up: dict[str, set[str]] = {}
    keys: dict[str, list[tuple[int, str]]] = {}
    for table, column, always, default, place in client.query(_LAYOUTS):
        name = table or ""
        made_up.setdefault(name, set())
        if always == "t" or _MADE_UP.search(default or ""):
            made_up[name].add(column or "")
        if place != "-1":
            keys.setdefault(name, []).append((int(place or 0), column or ""))
    return {
        name: Layout(frozenset(columns), tuple(column for _, column in sorted(keys.get(name, ()))))
        for name, columns in made_up.items()
    }


def some_rows(client: Client, table: str, key: Sequence[str], start: int, limit: int) -> Rows:
    """Up to ``limit`` rows of a table in the order of ``key``, after the first ``start``.

    Raises:
        SqlError: it is locked, or has gone.
    """
    ((oid, quoted),) = client.query(
        "SELECT c.oid, format('%I.%I', n.nspname, c.relname) FROM pg_class c "  # noqa: S608
        "JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind IN ('r', 'p') "
        f"AND chaoskit.name_of(n.nspname, c.relname) = {literal(table)}"
    ) or [(None, None)]
    if oid is None:
        raise SqlError("42P01", f"the table {table} has gone")
    columns = [
        column or ""
        for (column,) in client.query(
            "SELECT attname FROM pg_attribute "  # noqa: S608 - a number
            f"WHERE attrelid = {oid} AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
        )
    ]
    order = ", ".join('"' + column.replace('"', '""') + '"' for column in key) or "ctid"
    try:
        # A task may hold a lock on it for as long as it likes, and everybody waits for us.
        (total,), *rows = client.query(
            "BEGIN READ ONLY; SET LOCAL statement_timeout = '250ms'; "  # noqa: S608 - names quoted
            f"SELECT count(*) FROM {quoted}; "
            f"SELECT to_json(t) FROM {quoted} AS t ORDER BY {order} LIMIT {limit} OFFSET {start}; "
            "COMMIT"
        )
    except SqlError:
        client.query("ROLLBACK")
        raise
    read = [_row(text) or {} for (text,) in rows]
    shown = [[_words(row.get(column)) for column in columns] for row in read]
    return Rows(columns, shown, int(total or 0))


@dataclass(frozen=True, slots=True)
class _Booked:
    """A row of a table with its layout."""

    table: str
    row: Mapping[str, object]
    layout: Layout


def effects_of(entries: Iterable[Entry], known: Mapping[str, Layout]) -> list[Effect]:
    """The effects of some bookings, transaction by transaction."""
    units: dict[str, list[Change[_Booked]]] = {}
    for entry in entries:
        if entry.kind in VERBS:
            units.setdefault(entry.tx, []).append(_change(entry, known))
    return [effect for unit in units.values() for effect in _folded(unit)]


def _change(entry: Entry, known: Mapping[str, Layout]) -> Change[_Booked]:
    layout = known.get(entry.table, Layout())
    row = _Booked(entry.table, entry.row, layout)
    was = None if entry.was is None else _Booked(entry.table, entry.was, layout)
    return Change(row, None) if entry.kind == "delete" else Change(was, row)


def _folded(unit: Sequence[Change[_Booked]]) -> Iterable[Effect]:
    """The effects of one transaction."""
    if any(change.was is not None for change in unit):  # inserts alone leave nothing to fold
        unit = fold(unit, _content, [(_as_asked, _as_asked)], _keys)
    for was, now in ((change.was, change.now) for change in unit):
        if now is not None:
            yield _effect("insert" if was is None else "update", now, was)
        elif was is not None:
            yield _effect("delete", was)


def _content(booked: _Booked) -> Hashable:
    return booked.table, json.dumps(booked.row, sort_keys=True)


def _as_asked(booked: _Booked) -> Hashable:
    return booked.table, *_asked(booked.row, booked.layout).items()


def _keys(booked: _Booked) -> Iterable[Hashable]:
    key = booked.layout.key
    return [(booked.table, *(_words(booked.row.get(name)) for name in key))] if key else []


def _effect(kind: str, booked: _Booked, was: _Booked | None = None) -> Effect:
    layout = booked.layout
    asked = _asked(booked.row, layout)
    fields: dict[str, object] = dict(asked)
    if was is not None:
        before = _asked(was.row, layout)
        fields["was"] = {n: before.get(n, "") for n in asked if before.get(n, "") != asked[n]}
    words = {name: _words(value) for name, value in booked.row.items()}
    return Effect(
        service=SERVICE,
        kind=f"{booked.table}.{kind}",
        fields=flatten(fields),
        who=who_of(words),
        what=f"row {VERBS[kind]} in {booked.table}",
        ref=", ".join(words.get(column) or "" for column in layout.key),
    )


def _asked(row: Mapping[str, object], layout: Layout) -> dict[str, str]:
    """The columns that the writer decided on; all of them if there would be none."""
    asked = {name: value for name, value in row.items() if name not in layout.made_up}
    return {name: _words(value) or "" for name, value in (asked or row).items()}


def _words(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return in_words(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _row(text: str | None) -> Mapping[str, object] | None:
    """A row; numbers stay the digits that the database wrote."""
    if text is None:
        return None
    row: Mapping[str, object] = json.loads(text, parse_float=str, parse_int=str)
    return row


def operations_of(tables: Iterable[str]) -> Sequence[str]:
    """The names of everything that can be booked of some tables."""
    return tuple(f"{table}.{kind}" for table in tables for kind in VERBS)
