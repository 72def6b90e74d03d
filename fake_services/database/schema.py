"""What the books need to know of each table, read from the database itself."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass

OWN_PREFIX = "chaoskit_"
"""Tables and triggers of the books start with this and are never booked themselves."""

_VARYING_DEFAULT = re.compile(r"CURRENT_(?:TIME|DATE)|'now'|\brandom", re.IGNORECASE)
_AUTOINCREMENT = re.compile(r"\bAUTOINCREMENT\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Table:
    """One ordinary table.

    ``rowid_alias`` is its INTEGER PRIMARY KEY, the one column whose value SQLite makes up when
    none is given; ``autoincrement`` says that it is declared to be made up. ``varying`` are the
    columns whose default comes from the clock or from chance. ``unique`` are the sets of columns
    of which no two rows share the values, the primary key first.
    """

    name: str
    columns: tuple[str, ...]
    primary_key: tuple[str, ...] = ()
    rowid_alias: str | None = None
    autoincrement: bool = False
    varying: frozenset[str] = frozenset()
    unique: tuple[tuple[str, ...], ...] = ()


def read_tables(connection: sqlite3.Connection) -> list[Table]:
    """Every table whose rows are booked, by name.

    Left out are views, virtual tables and the shadow tables that those keep their data in, the
    temporary tables of a connection, SQLite's own tables and the books.
    """
    listed = connection.execute(
        "SELECT l.name, s.sql FROM pragma_table_list AS l "
        "JOIN sqlite_schema AS s ON s.type = 'table' AND s.name = l.name "
        "WHERE l.schema = 'main' AND l.type = 'table' ORDER BY l.name"
    ).fetchall()
    return [
        _read_table(connection, name, sql)
        for name, sql in listed
        if not name.lower().startswith((OWN_PREFIX, "sqlite_"))
    ]


def quoted(name: str) -> str:
    """``name`` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """``text`` as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def _read_table(connection: sqlite3.Connection, name: str, sql: str) -> Table:
    columns = connection.execute(
        "SELECT name, type, dflt_value, pk FROM pragma_table_xinfo(?) ORDER BY cid", (name,)
    ).fetchall()
    keys = sorted((pk, column) for column, _, _, pk in columns if pk)
    primary_key = tuple(column for _, column in keys)
    types = {column: kind for column, kind, _, _ in columns}
    indexes = connection.execute(
        'SELECT name, origin FROM pragma_index_list(?) WHERE "unique" AND NOT partial', (name,)
    ).fetchall()
    # A primary key that needs no index of its own is the rowid itself.
    is_alias = (
        len(primary_key) == 1
        and types[primary_key[0]].upper() == "INTEGER"
        and all(origin != "pk" for _, origin in indexes)
    )
    others = [_index_columns(connection, index) for index, origin in indexes if origin != "pk"]
    return Table(
        name=name,
        columns=tuple(types),
        primary_key=primary_key,
        rowid_alias=primary_key[0] if is_alias else None,
        autoincrement=is_alias and _AUTOINCREMENT.search(sql) is not None,
        varying=frozenset(
            c for c, _, default, _ in columns if _VARYING_DEFAULT.search(default or "")
        ),
        unique=tuple(names for names in (primary_key, *others) if names),
    )


def _index_columns(connection: sqlite3.Connection, index: str) -> tuple[str, ...]:
    """The columns of an index; none if it is over an expression, which only SQLite can compute."""
    rows = connection.execute("SELECT name FROM pragma_index_info(?)", (index,)).fetchall()
    names = tuple(name for (name,) in rows)
    return names if all(name is not None for name in names) else ()
