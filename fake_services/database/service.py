"""The database service: a SQLite file that the task opens itself, with books inside it."""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from chaoskit.model.behaviours import Behaviour
from chaoskit.model.effects import Effect
from chaoskit.model.errors import UsageError, unknown_name
from chaoskit.model.hosting import Address, Observer, Service, ServiceSettings
from fake_services.database.books import SERVICE, Books, Row, Value, in_words
from fake_services.database.file import (
    Schema,
    build_template,
    contents,
    entries_after,
    keep_books,
    opened,
    renew,
    schema_of,
    some_rows,
    table_names,
)
from fake_services.database.schema import Table
from fake_services.ledger import Ledger
from fake_services.shown import Rows

FILE = "database.sqlite"
"""The database, in the service's folder."""

KINDS = ("insert", "update", "delete")

BUSY_TIMEOUT_S = 5.0
"""How long a lock on the file is waited for, once the task is dead."""

_LOOK_TIMEOUT_S = 0.1
"""How long it is waited for by someone who can look again."""


class DatabaseService:
    """Implements `chaoskit.model.hosting.Service`, without a socket: SQLite is in the task.

    The option ``tables`` holds the SQL that creates the tables (and any rows that are there from
    the start); without it the task finds no file and makes its own. Its effects are named
    ``database.<table>.insert``, ``.update`` and ``.delete``.

    Tables of the option are booked change by change. A table that the task creates is booked from
    its rows when the attempt has ended, and change by change from then on; what happened to a row
    before that is not seen, so a kill can split one insert into an insert and an update. Declare
    the tables where that matters.
    """

    def __init__(self, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self.name = SERVICE
        self.operations: Sequence[str] = ()
        self._busy_timeout_s = busy_timeout_s
        self._path = Path(FILE)
        self._template: Path | None = None
        self._tables: Sequence[Table] = ()
        self._first_rows: Sequence[tuple[str, Row]] = ()
        self._first_schema: Schema = ()
        self._schema: Schema = ()
        self._books = Books(())
        self._ledger = Ledger()
        self._seq = 0
        self._collected = 0

    async def start(self, observer: Observer, settings: ServiceSettings) -> Address:
        """Make the file; see `Service.start`. The observer is told nothing: there are no requests.

        Raises:
            ScenarioError: SQLite refuses the option ``tables``.
        """
        folder = settings.folder.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / FILE
        self._template, self._tables, self._first_rows, self._first_schema = None, (), (), ()
        if tables_sql := settings.options.get("tables", "").strip():
            template = folder / f"{FILE}.template"
            self._tables, self._first_rows = build_template(template, tables_sql)
            self._template = template
            with opened(template, busy_timeout_s=0) as connection:
                self._first_schema = schema_of(connection)
        self.reset(0, ())
        url = f"sqlite:///{self._path}"
        return Address({"url": url, "path": str(self._path)}, {"CHAOSKIT_DATABASE_URL": url})

    def reset(self, seed: int, behaviours: Sequence[Behaviour]) -> None:
        """The file as after the start; see `Service.reset`.

        Raises:
            UsageError: a behaviour names this service, which has no answers to lose or delay.
        """
        for behaviour in behaviours:
            if behaviour.service == self.name:
                raise UsageError(
                    f"{behaviour}: the embedded database runs inside the task and sends no "
                    "replies; behaviours are for email and payments"
                )
        renew(self._path, self._template)
        self._books = Books(self._tables, self._first_rows)
        self._ledger.clear()
        self._seq = self._collected = 0
        self._schema = self._first_schema
        self.operations = _operations(self._tables)

    def save(self) -> bytes:
        """What was read of the file; it and its journals are kept as they lie there.

        As after a kill, the next to open it finishes or undoes what was begun.
        """
        known = (self._books, self._ledger.entries, self._seq, self._collected, self._schema)
        return pickle.dumps(known, pickle.HIGHEST_PROTOCOL)

    def restore(self, saved: bytes) -> None:
        """See `Restorable.restore`. The bytes are our own and never leave this process."""
        self._books, entries, self._seq, self._collected, self._schema = pickle.loads(saved)  # noqa: S301
        self._ledger.clear()
        self._ledger.book(entries)

    async def quiesce(self, timeout_s: float) -> bool:
        """At once: nobody connects. The kernel freed the dead task's locks before it was reaped."""
        return True

    def collect(self) -> Sequence[Effect]:
        """Effects since the last call, once an attempt has ended; see `Service.collect`.

        Opening the file finishes or undoes what the kill interrupted, as a database server does
        when it starts again; its journal mode stays as the task set it. A file that the task
        removed has no effects.

        Raises:
            ScenarioError: the file is locked, or is no intact SQLite database.
        """
        if self._path.exists():
            with opened(self._path, self._busy_timeout_s) as connection:
                if schema_of(connection) != self._schema:
                    self._look_closely(connection)
                self._seq, entries = entries_after(connection, self._seq)
            self._ledger.book(self._books.read(entries))
        new = self._ledger.entries[self._collected :]
        self._collected += len(new)
        return new

    def _look_closely(self, connection: sqlite3.Connection) -> None:
        """Take in tables that are new or were changed; most attempts leave them as they were."""
        tables, begun = keep_books(connection, {table.name for table in self._tables})
        if begun:
            self._seq = 0
        self._books.learn(tables)
        self._schema = schema_of(connection)
        self.operations = _operations([*self._tables, *tables])

    def ledger(self) -> Sequence[Effect]:
        """Every effect since the reset that a trigger has booked or `collect` has found.

        Raises:
            ScenarioError: as for `collect`.
        """
        if self._path.exists():
            with opened(self._path, self._busy_timeout_s) as connection:
                self._seq, entries = entries_after(connection, self._seq)
            self._ledger.book(self._books.read(entries))
        return self._ledger.entries

    def contents(self) -> dict[str, list[Row]]:
        """Every row of every table now, in the order of the keys, for a report.

        Raises:
            ScenarioError: as for `collect`.
        """
        if not self._path.exists():
            return {}
        with opened(self._path, self._busy_timeout_s) as connection:
            return contents(connection)

    def tables(self) -> Sequence[str]:
        """See `fake_services.shown.Tabular`."""
        if not self._path.exists():
            return ()
        with opened(self._path, _LOOK_TIMEOUT_S) as connection:
            return table_names(connection)

    def rows(self, table: str, start: int, limit: int) -> Rows:
        """See `fake_services.shown.Tabular`."""
        if not self._path.exists():
            raise unknown_name("table", table, ())
        with opened(self._path, _LOOK_TIMEOUT_S) as connection:
            columns, rows, total = some_rows(connection, table, start, limit)
        return Rows(columns, [[_shown(row.get(name)) for name in columns] for row in rows], total)

    async def stop(self) -> None:
        """Remove the template; the database itself stays for whoever wants to look at it."""
        if self._template is not None:
            renew(self._template, None)
            self._template = None


def create() -> Service:
    """The factory that the ``chaoskit.services`` entry point names."""
    return DatabaseService()


def _shown(value: Value) -> str | None:
    return None if value is None else in_words(value)


def _operations(tables: Sequence[Table]) -> tuple[str, ...]:
    names = dict.fromkeys(table.name for table in tables)
    return tuple(f"{name}.{kind}" for name in names for kind in KINDS)
