"""The markers in an SQLite database; see `chaoskit.runtime.markers.Markers` for each function.

Any `sqlite3.Connection` will do: autocommit, the older implicit transactions, or the
``autocommit=False`` of Python 3.12. Transactions are begun and ended here, in SQL, because each of
these modes gives ``connection.commit()`` another meaning.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from chaoskit.runtime.errors import Misuse
from chaoskit.runtime.fingerprint import Fingerprint
from chaoskit.runtime.markers import Marker
from chaoskit.runtime.store_file import address

_CREATE = """
CREATE TABLE IF NOT EXISTS chaoskit_step (
    run TEXT NOT NULL, step TEXT NOT NULL, inputs TEXT NOT NULL, result TEXT,
    PRIMARY KEY (run, step)
) WITHOUT ROWID
"""
_FIND = "SELECT step, inputs, result FROM chaoskit_step WHERE run = ?"
_BEGIN = "INSERT OR REPLACE INTO chaoskit_step (run, step, inputs) VALUES (?, ?, ?)"
_COMPLETE = "UPDATE chaoskit_step SET result = ? WHERE run = ? AND step = ?"
_FORGET = "DELETE FROM chaoskit_step WHERE run = ? AND step = ?"
_FORGET_RUN = "DELETE FROM chaoskit_step WHERE run = ?"
_EXISTS = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'chaoskit_step'"
_ANY = "SELECT 1 FROM chaoskit_step LIMIT 1"
_DROP = "DROP TABLE chaoskit_step"
_FILE = "SELECT file FROM pragma_database_list WHERE name = 'main'"


def file_of(connection: sqlite3.Connection) -> str:
    """The absolute path of the file behind ``connection``.

    Raises:
        Misuse: there is none, so that neither the effect nor its marker outlives the process.
    """
    ((file,),) = _rows(connection, _FILE, ())
    if not file:
        raise Misuse(
            "an atomic step needs a database in a file: what this connection writes is lost with "
            "its process, and a resume would take it for done"
        )
    return str(file)


@contextmanager
def transaction(connection: sqlite3.Connection, uid: str) -> Iterator[None]:
    """One write transaction: committed at the end of the block, rolled back if it raises.

    Raises:
        Misuse: the connection has a transaction open, whose other writes would join this one.
    """
    with _ended_by_hand(connection):
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def of_run(connection: sqlite3.Connection, uid: str) -> dict[str, Marker]:
    """The markers of a run, by step: at most a few. Makes their table where there is none."""
    connection.execute(_CREATE)
    return {
        step: Marker(step, json.loads(inputs), result)
        for step, inputs, result in _rows(connection, _FIND, (uid,))
    }


def begin(connection: sqlite3.Connection, uid: str, step: str, inputs: Fingerprint) -> None:
    """Write a marker without a result, before the body.

    If the body ends the transaction on its own, this is what tells the next attempt.
    """
    connection.execute(_BEGIN, (uid, step, json.dumps(dict(inputs))))


def complete(connection: sqlite3.Connection, uid: str, step: str, result: str) -> bool:
    """Give the marker its result; False if the body ended the transaction."""
    if not connection.in_transaction:
        return False
    return connection.execute(_COMPLETE, (result, uid, step)).rowcount == 1


def forget(connection: sqlite3.Connection, uid: str, step: str) -> None:
    """Remove the marker of a step whose own record is durable."""
    connection.execute(_FORGET, (uid, step))


def forget_run(file: str, uid: str, known: object) -> None:
    """Remove what is left of a run's markers, and their table with the last of them.

    A file that has gone took its markers along. It is opened anew: any that is ``known`` may be
    another thread's, or in a transaction.
    """
    if not Path(file).exists():
        return
    with closing(sqlite3.connect(address(file), uri=True, isolation_level=None)) as connection:
        try:
            if connection.execute(_EXISTS).fetchone():
                with transaction(connection, uid):
                    connection.execute(_FORGET_RUN, (uid,))
                    if connection.execute(_ANY).fetchone() is None:
                        connection.execute(_DROP)
        except sqlite3.DatabaseError as error:
            error.add_note(
                f"the marker of the last atomic step could not be removed from {file}: end any "
                "transaction that is open there, then finish again"
            )
            raise


@contextmanager
def _ended_by_hand(connection: Any) -> Iterator[None]:
    """Keep ``connection`` from opening and ending transactions of its own, in every mode.

    With ``autocommit=False`` a transaction is always open, and nothing tells an idle one from one
    with writes in it; it is committed first, as that mode's ``commit()`` would.
    """
    if getattr(connection, "autocommit", True) is False:
        connection.autocommit = True
        try:
            yield
        finally:
            connection.autocommit = False
        return
    if connection.in_transaction:
        raise Misuse(
            "this connection has a transaction open, and its writes would be repeated or lost "
            "apart from the step: commit or roll it back before an atomic step"
        )
    yield


def _rows(connection: Any, sql: str, parameters: Sequence[object]) -> list[Any]:
    """Rows as tuples of plain text, whatever factories the caller has set."""
    cursor = connection.cursor()
    cursor.row_factory = None
    text_factory: Callable[[bytes], Any] = connection.text_factory
    connection.text_factory = str
    try:
        return list(cursor.execute(sql, parameters).fetchall())
    finally:
        connection.text_factory = text_factory
