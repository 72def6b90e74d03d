"""The database file: built once, copied for each world, opened when nobody else has it open."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copyfile

from chaoskit.model.errors import ScenarioError, unknown_name
from fake_services.database.books import Entry, Row, decode_row
from fake_services.database.schema import Table, quoted, read_tables
from fake_services.database.triggers import (
    FULL,
    LEDGER,
    book_contents,
    create_books,
    in_order,
    install,
    installed,
    row_json,
    tells_units,
    triggers_for,
)

_SIDE_FILES = ("-wal", "-shm", "-journal")
"""What SQLite puts next to a database, by the end of the name."""


Schema = tuple[tuple[str, str, str | None], ...]
"""Name, table and statement of everything that a database declares."""


@contextmanager
def opened(path: Path, busy_timeout_s: float) -> Iterator[sqlite3.Connection]:
    """A connection to an existing database; opening it finishes or undoes what a kill interrupted.

    Raises:
        ScenarioError: another process holds it locked for longer than ``busy_timeout_s`` seconds,
            or what lies there is no intact SQLite database. Either is the task's doing.
    """
    try:
        with closing(
            sqlite3.connect(
                f"{path.as_uri()}?mode=rw",
                uri=True,
                timeout=busy_timeout_s,
                isolation_level=None,
            )
        ) as connection:
            connection.text_factory = _text
            # Nothing here has to survive a power cut, and waiting for the disk would cost more
            # than everything else.
            connection.execute("PRAGMA synchronous = OFF")
            yield connection
    except sqlite3.DatabaseError as refused:
        raise ScenarioError(_explained(path, refused, busy_timeout_s)) from refused


def build_template(path: Path, tables_sql: str) -> tuple[list[Table], list[tuple[str, Row]]]:
    """Make the database that every world starts from.

    Args:
        path: where; an older one is replaced.
        tables_sql: statements that create the tables, and any rows that are there from the start,
            which are not booked.

    Returns:
        The tables, and the rows that they start with.

    Raises:
        ScenarioError: SQLite refuses the statements.
    """
    _remove(path)
    try:
        with closing(sqlite3.connect(path)) as connection:
            if "auto_vacuum" not in tables_sql.lower():  # a choice that SQLite lets us make once
                # So that transactions can be told apart; see `fake_services.database.triggers`.
                connection.execute(f"PRAGMA auto_vacuum = {FULL}")
            connection.executescript(tables_sql)
            connection.commit()
    except sqlite3.Error as refused:
        raise ScenarioError(f"database: the tables cannot be created: {refused}") from refused
    with opened(path, busy_timeout_s=0) as connection:
        tables = read_tables(connection)
        rows = [(table.name, row) for table in tables for row in _encoded_rows(connection, table)]
        _bring_up_to_date(connection, tables, {table.name for table in tables}, book_rows=False)
    return tables, rows


def renew(path: Path, template: Path | None) -> None:
    """Put a copy of ``template`` at ``path``, or nothing, whatever was there before."""
    _remove(path)
    if template is not None:
        copyfile(template, path)


def schema_of(connection: sqlite3.Connection) -> Schema:
    """Every table, index and trigger there is; equal for two files that look the same inside."""
    return tuple(connection.execute("SELECT name, tbl_name, sql FROM sqlite_schema"))


def keep_books(connection: sqlite3.Connection, exact: set[str]) -> tuple[list[Table], bool]:
    """See to it that every table is booked from now on, and so are the rows of new tables.

    Args:
        connection: to the database.
        exact: the tables that were there when the world began.

    Returns:
        Every table; and whether the books had to be begun, because the task made the file.
    """
    tables, begun = read_tables(connection), not _has_books(connection)
    _bring_up_to_date(connection, tables, exact, book_rows=True)
    return tables, begun


def entries_after(connection: sqlite3.Connection, seq: int) -> tuple[int, list[Entry]]:
    """The bookings after the one numbered ``seq``, and the number of the last one."""
    if not _has_books(connection):
        return seq, []
    rows = connection.execute(
        f'SELECT seq, kind, table_name, "row", was, assigned FROM {LEDGER} '  # noqa: S608
        "WHERE seq > ? ORDER BY seq",
        (seq,),
    ).fetchall()
    entries = [
        Entry(
            kind,
            table,
            row,
            was,
            None if assigned is None else bool(assigned),
        )
        for _, kind, table, row, was, assigned in rows
    ]
    return rows[-1][0] if rows else seq, entries


def contents(connection: sqlite3.Connection) -> dict[str, list[Row]]:
    """Every row of every table, in the order of the keys."""
    return {table.name: list(_encoded_rows(connection, table)) for table in read_tables(connection)}


def table_names(connection: sqlite3.Connection) -> list[str]:
    """Every table whose rows are booked, by name."""
    return [table.name for table in read_tables(connection)]


def some_rows(
    connection: sqlite3.Connection, name: str, start: int, limit: int
) -> tuple[Sequence[str], list[Row], int]:
    """Columns, up to ``limit`` rows of a table after the first ``start``, and how many it has.

    Raises:
        UsageError: there is no table with this name.
    """
    tables = {table.name: table for table in read_tables(connection)}
    if name not in tables:
        raise unknown_name("table", name, tables)
    ((total,),) = connection.execute(f"SELECT count(*) FROM {quoted(name)}")  # noqa: S608
    rows = list(_encoded_rows(connection, tables[name], limit, start))
    return tables[name].columns, rows, total


def _remove(path: Path) -> None:
    """Delete a database and everything that SQLite put next to it."""
    for suffix in ("", *_SIDE_FILES):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _has_books(connection: sqlite3.Connection) -> bool:
    found = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (LEDGER,))
    return found.fetchone() is not None


def _bring_up_to_date(
    connection: sqlite3.Connection, tables: Sequence[Table], exact: set[str], *, book_rows: bool
) -> None:
    found = {table.name: installed(connection, table.name) for table in tables}
    units = tells_units(connection)
    wanted = {
        table.name: triggers_for(
            table, exact=table.name in exact, units=units and table.name in exact
        )
        for table in tables
    }
    stale = [table for table in tables if found[table.name] != wanted[table.name]]
    if not stale and _has_books(connection):
        return  # the ordinary case: nothing to write
    connection.execute("BEGIN IMMEDIATE")
    create_books(connection)
    for table in stale:
        install(connection, table, wanted[table.name])
        if book_rows and not found[table.name]:
            book_contents(connection, table)
    connection.execute("COMMIT")


def _encoded_rows(
    connection: sqlite3.Connection, table: Table, limit: int = -1, start: int = 0
) -> Iterator[Row]:
    for (text,) in connection.execute(
        f"SELECT {row_json(table, 't')} FROM {quoted(table.name)} AS t {in_order(table)} "  # noqa: S608
        f"LIMIT {limit} OFFSET {start}"
    ):
        yield decode_row(text)


def _text(raw: bytes) -> str:
    # SQLite does not check that a text is UTF-8.
    return raw.decode("utf-8", "replace")


def _explained(path: Path, refused: sqlite3.DatabaseError, busy_timeout_s: float) -> str:
    code = getattr(refused, "sqlite_errorcode", None)
    if code is not None and code & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return (
            f"database: {path.name} is still locked after {busy_timeout_s:g} s: a process that "
            "outlived the attempt holds it"
        )
    if code is not None and code & 0xFF in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
        return (
            f"database: {path.name} is no intact SQLite database any more ({refused}): the task "
            "wrote over it, or moved it without the -wal or -journal file next to it"
        )
    return f"database: {path.name} cannot be read: {refused}"
