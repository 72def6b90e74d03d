"""The triggers that keep the books: in the same transaction as the rows, whoever writes them.

A row and its booking are committed together or not at all, so a task that is killed in the middle
of a transaction leaves neither. ``chaoskit_ledger`` holds one line for each change of a row, as
JSON that gives back every value exactly (`fake_services.database.books` reads it).

SQL cannot ask SQLite which transaction it is in. But a file in the mode ``auto_vacuum=FULL`` has no
free pages when a transaction begins, as each commit gives them back. So whoever finds none before a
change notes that a transaction has begun, and leaves one; whoever used it up meanwhile leaves
another. The sign errs to one side: pages that a change without a booking used up (of a table that
the task made in this attempt) make two transactions of one, and never one of two.

What SQLite itself leaves out, or shows to the task:

- ``INSERT OR REPLACE`` fires no trigger for the row that it replaces, unless the connection has
  set ``recursive_triggers``. The books are read so that this is an update all the same.
- ``PRAGMA total_changes`` counts the bookings as well; ``changes()``, ``last_insert_rowid()`` and
  ``RETURNING`` are not touched.
- ``PRAGMA trusted_schema = OFF`` makes SQLite refuse the triggers.
- The file is in the mode ``auto_vacuum=FULL``. Tables whose SQL sets ``auto_vacuum`` keep their own
  choice; where it is another one, each change is taken for a transaction of its own.
- ``ALTER TABLE … DROP COLUMN`` is refused while a trigger names the column. A migration that drops
  columns has to create its tables itself: those get triggers only when its attempt has ended.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from fake_services.database.books import ANEW, BEGIN
from fake_services.database.schema import OWN_PREFIX, Table, literal, quoted

LEDGER = "chaoskit_ledger"
FULL = 1
"""What ``PRAGMA auto_vacuum`` says of a file in which transactions can be told apart."""

_ASSIGNED = "chaoskit_assigned"

_CHUNK = 40
"""Columns per json_object: it takes two arguments each, and some builds of SQLite allow 100."""

_BOOKS = f"""
CREATE TABLE IF NOT EXISTS {LEDGER} (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, table_name TEXT NOT NULL,
    "row" TEXT NOT NULL, was TEXT, assigned INTEGER, spare BLOB)
"""
_ASSIGNMENTS = f"""
CREATE TABLE IF NOT EXISTS {_ASSIGNED} (table_name TEXT PRIMARY KEY, yes INTEGER) WITHOUT ROWID
"""


def create_books(connection: sqlite3.Connection) -> None:
    """The tables of the books, where they do not exist yet."""
    connection.execute(_BOOKS)
    connection.execute(_ASSIGNMENTS)


def row_json(table: Table, source: str) -> str:
    """The SQL expression for a whole row of ``table`` as JSON.

    It is an array of objects, because one object has no room for a wide table. Each value is an
    integer, null, or a string that starts with its type: ``t:`` text, ``r:`` a real in SQL's
    notation, ``b:`` a blob in hexadecimal. JSON itself has no blob, no infinity and, in SQLite's
    hands, only 15 digits of a real.

    Args:
        table: what the row is of.
        source: what stands before the column: ``NEW``, ``OLD`` or the table's name.
    """
    pairs = [f"{literal(c)}, {_value(f'{source}.{quoted(c)}')}" for c in table.columns]
    chunks = [", ".join(pairs[i : i + _CHUNK]) for i in range(0, len(pairs), _CHUNK)]
    return "'[' || " + " || ',' || ".join(f"json_object({chunk})" for chunk in chunks) + " || ']'"


def triggers_for(table: Table, *, exact: bool, units: bool) -> Mapping[str, str]:
    """The triggers of ``table``: names and statements.

    Args:
        table: where to put them.
        exact: find out for each insert whether SQLite made up the INTEGER PRIMARY KEY; otherwise
            the booking leaves it open.
        units: note where a transaction begins.
    """
    assigned = _assigned(table, exact=exact)
    bookings = {
        "insert": _booking(table, "insert", "NEW", None, assigned),
        "update": _booking(table, "update", "NEW", "OLD", "NULL"),
        "delete": _booking(table, "delete", "OLD", None, "NULL"),
    }
    before = {
        event: ([_BEGIN, *_LEAVE_A_PAGE] if units else [])
        + ([_watch_assignment(table)] if exact and table.rowid_alias and event == "insert" else [])
        for event in bookings
    }
    on = quoted(table.name)
    statements = {
        **{
            event: f"AFTER {event.upper()} ON {on} BEGIN "
            f"{'; '.join([booking, *(_LEAVE_A_PAGE if units else ())])}; END"
            for event, booking in bookings.items()
        },
        **{
            f"before_{event}": f"BEFORE {event.upper()} ON {on} BEGIN {'; '.join(these)}; END"
            for event, these in before.items()
            if these
        },
    }
    names = {event: f"{OWN_PREFIX}{table.name}_{event}" for event in statements}
    return {
        names[event]: f"CREATE TRIGGER {quoted(names[event])} {statement}"
        for event, statement in statements.items()
    }


def install(connection: sqlite3.Connection, table: Table, triggers: Mapping[str, str]) -> None:
    """Put ``triggers`` on ``table``, in place of older ones that it may have."""
    for name in installed(connection, table.name):
        connection.execute(f"DROP TRIGGER {quoted(name)}")
    for statement in triggers.values():
        connection.execute(statement)
    connection.execute(
        f"INSERT OR IGNORE INTO {_ASSIGNED} VALUES (?, 0)",  # noqa: S608 - a constant
        (table.name,),
    )


def tells_units(connection: sqlite3.Connection) -> bool:
    """Whether transactions can be told apart in this file."""
    ((mode,),) = connection.execute("PRAGMA auto_vacuum")
    return bool(mode == FULL)


def installed(connection: sqlite3.Connection, table_name: str) -> Mapping[str, str]:
    """The books' triggers that are on a table now: names and statements."""
    rows: Iterable[tuple[str, str]] = connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?", (table_name,)
    ).fetchall()
    return {name: sql for name, sql in rows if name.startswith(OWN_PREFIX)}


def book_contents(connection: sqlite3.Connection, table: Table) -> None:
    """Book every row that ``table`` has now as all that it has, for rows that no trigger saw."""
    connection.execute(
        f'INSERT INTO {LEDGER}(kind, table_name, "row") '  # noqa: S608 - names are quoted
        f"VALUES ('{ANEW}', {literal(table.name)}, '[]')"
    )
    connection.execute(
        f'INSERT INTO {LEDGER}(kind, table_name, "row") '  # noqa: S608 - names are quoted
        f"SELECT 'insert', {literal(table.name)}, {row_json(table, 't')} "
        f"FROM {quoted(table.name)} AS t {in_order(table)}"
    )


def in_order(table: Table) -> str:
    """The ORDER BY clause that gives a table's rows in the order of their keys."""
    return "ORDER BY " + (", ".join(quoted(c) for c in table.primary_key) or "rowid")


def _value(column: str) -> str:
    return (
        f"CASE typeof({column}) WHEN 'text' THEN 't:' || {column} "
        f"WHEN 'real' THEN 'r:' || quote({column}) "
        f"WHEN 'blob' THEN 'b:' || hex({column}) ELSE {column} END"
    )


def _booking(table: Table, kind: str, row: str, was: str | None, assigned: str) -> str:
    return (
        f'INSERT INTO {LEDGER}(kind, table_name, "row", was, assigned) VALUES '  # noqa: S608
        f"('{kind}', {literal(table.name)}, {row_json(table, row)}, "
        f"{row_json(table, was) if was else 'NULL'}, {assigned})"
    )


def _assigned(table: Table, *, exact: bool) -> str:
    if table.rowid_alias is None:
        return "0"
    if not exact:
        return "NULL"
    return f"(SELECT yes FROM {_ASSIGNED} WHERE table_name = {literal(table.name)})"  # noqa: S608


def _watch_assignment(table: Table) -> str:
    # Before the insert a key that SQLite has yet to make up reads as -1; after it, it looks like
    # any other. A trigger can only remember by writing, so it writes when the answer changes.
    made_up = f"(ifnull(NEW.{quoted(table.rowid_alias or '')}, -1) = -1)"
    return (
        f"UPDATE {_ASSIGNED} SET yes = {made_up} "  # noqa: S608 - names are quoted
        f"WHERE table_name = {literal(table.name)} AND yes <> {made_up}"
    )


_NO_PAGE_FREE = (
    "((SELECT freelist_count FROM pragma_freelist_count) = 0 "  # noqa: S608 - a constant
    f"OR (SELECT auto_vacuum FROM pragma_auto_vacuum) <> {FULL})"
)
_BEGIN = (
    f"INSERT INTO {LEDGER}(kind, table_name, \"row\") SELECT '{BEGIN}', '', '[]' "
    f"WHERE {_NO_PAGE_FREE}"
)
_LAST = f"seq = (SELECT max(seq) FROM {LEDGER})"  # noqa: S608 - a constant
_TAKE_PAGES = (
    f"UPDATE {LEDGER} SET spare = zeroblob(2 * (SELECT page_size FROM pragma_page_size)) "  # noqa: S608
    f"WHERE {_LAST} AND {_NO_PAGE_FREE}"
)
_LEAVE_A_PAGE = (
    _TAKE_PAGES,
    f"UPDATE {LEDGER} SET spare = NULL WHERE {_LAST} AND spare IS NOT NULL",  # noqa: S608
)
