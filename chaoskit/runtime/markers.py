"""Markers: rows in an effect's own database that say, in its own transaction, "this step is done".

What is asked of them is the same for every kind of database; each kind is a module of its own,
loaded when a connection of that kind is first given.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from chaoskit.runtime.errors import Misuse
from chaoskit.runtime.fingerprint import Fingerprint


class Marker(NamedTuple):
    """A marker; without a ``result`` its body began and ended the transaction on its own."""

    step: str
    inputs: Fingerprint
    result: str | None


class Markers(Protocol):
    """The markers in one kind of database. ``connection`` is the caller's, ``uid`` the run's."""

    def file_of(self, connection: Any) -> str:
        """Where the database is, so that a later attempt finds it; without a password.

        Raises:
            Misuse: what is written there does not outlive the process, or it is no such connection.
        """

    def transaction(self, connection: Any, uid: str) -> AbstractContextManager[None]:
        """One write transaction: committed at the end of the block, rolled back if it raises.

        Two of one run in one database never overlap, so that a marker that is not seen in it will
        not come to light later.

        Raises:
            Misuse: the connection has a transaction open, whose other writes would join this one.
        """

    def of_run(self, connection: Any, uid: str) -> dict[str, Marker]:
        """The markers of a run, by step: at most a few. Raises ValueError if one is damaged."""

    def begin(self, connection: Any, uid: str, step: str, inputs: Fingerprint) -> None:
        """Write a marker without a result, before the body.

        If the body ends the transaction on its own, this is what tells the next attempt.
        """

    def complete(self, connection: Any, uid: str, step: str, result: str) -> bool:
        """Give the marker its result; False if the body ended the transaction."""

    def forget(self, connection: Any, uid: str, step: str) -> None:
        """Remove the marker of a step whose own record is durable."""

    def forget_run(self, file: str, uid: str, known: Any) -> None:
        """Remove what is left of a run's markers in the database that `file_of` named.

        ``known`` is the connection that this attempt used last for it, None if it used none.
        """


def markers_of(connection: object) -> Markers:
    """The markers in the database behind ``connection``.

    Raises:
        Misuse: it is not a connection of a kind that is known here.
    """
    packages = {kind.__module__.partition(".")[0] for kind in type(connection).__mro__}
    if packages & {"sqlite3", "_sqlite3"}:
        return _in_sqlite()
    if "psycopg" in packages:
        return _in_postgres()
    raise Misuse(
        "an atomic step needs a connection of sqlite3 or of psycopg (version 3), not "
        f"{type(connection).__module__}.{type(connection).__qualname__}"
    )


def markers_at(file: str) -> Markers:
    """The markers in the database that `Markers.file_of` named."""
    return _in_postgres() if "://" in file else _in_sqlite()


def _in_sqlite() -> Markers:
    from chaoskit.runtime import markers_sqlite

    return markers_sqlite


def _in_postgres() -> Markers:
    from chaoskit.runtime import markers_postgres

    return markers_postgres
