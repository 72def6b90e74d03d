"""The connection of a PostgreSQL store: made when it is needed, and replaced when it is lost.

A connection that is lost at a commit leaves open whether the commit landed, and even whether it
still may: the server can have the statement in its hands. So each connection holds an advisory
lock of its own for as long as it lives. Whoever replaces it has it ended, waits for that lock, and
only then looks and writes; by then all that the lost one did is decided. A server that crashed or
is started again refuses connections for a moment, so whoever had one keeps asking for a while.

It must be the server's own session for as long as it lasts: a pooler that hands out a server
connection per transaction keeps neither the lock nor the settings.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from threading import Event
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from chaoskit.runtime import store_postgres_rows as rows
from chaoskit.runtime.errors import DamagedStore, Misuse, Refused, StoreUnavailable, announced

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ImportError as error:
    raise Misuse(
        f"a store at postgresql://… needs psycopg, version 3: pip install chaoskit[postgres] "
        f"({error})"
    ) from error

T = TypeVar("T")
Cursor = psycopg.Cursor[tuple[Any, ...]]

_CREATORS_KEY = 0x6368616F_736B6974
"""The advisory lock of whoever makes a store: one at a time in a database."""
_REPEATS_MAX = 5
_RECOVERY_S = 10.0
"""For how long a lost connection is asked for again. A server is back from a crash or a restart
within a second or a few, unless much of its log has to be read again."""
_PAUSE_S = 0.05
_DEFAULTS = {"connect_timeout": "10", "tcp_user_timeout": "30000", "application_name": "chaoskit"}
"""In seconds and milliseconds: a server that cannot be reached is a refusal, not a long wait."""

_SET_UP = """
SET search_path TO chaoskit;
SET default_transaction_isolation TO 'read committed';
SET lock_timeout TO '30s';
SELECT set_config('synchronous_commit', CASE
    WHEN {asynchronous} THEN 'off'
    WHEN current_setting('synchronous_commit') = 'remote_apply' THEN 'remote_apply'
    ELSE 'on' END, false);
SELECT pg_advisory_lock({key})
"""
_END = """
SELECT pg_terminate_backend(pid) FROM pg_locks
WHERE locktype = 'advisory' AND objsubid = 1 AND pid <> pg_backend_pid()
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (classid::bigint << 32) | objid::bigint = {key}
"""
_WAIT = "SELECT pg_advisory_lock({key}); SELECT pg_advisory_unlock({key})"

_LOST = re.compile("08...|57P0[1-5]")
_AGAIN = frozenset({"40001", "40P01"})
_FIXES = {
    "25006": "the server takes no writes, as a standby does: give the address of its primary",
    "42501": "a right is missing: give this role what the message names",
    "53100": "the disk of the server is full: make room",
    "53": "the server has not enough memory or connections: free some",
    "55P03": "another session holds a lock: end its transaction",
    "57014": "the statement took too long: raise statement_timeout, or see what holds it up",
    "58": "the server does not read or write its files: look at its disk",
    "40": "other writers come in between again and again: try again",
}
"""By SQLSTATE, the whole of it or its class."""
_DAMAGE = frozenset({"3F000", "42P01", "42703", "XX001", "XX002"})


class Session:
    """A connection to the database of a store, for one thread at a time.

    Args:
        url: ``postgresql://…``, as libpq reads it.
        durability: ``full`` or ``normal``.
        create: make a new store where there is none.

    Raises: as `chaoskit.runtime.books.open_books`.

    Attributes:
        place: the URL without its passwords.
        intact: asked after each replacement whether the store still has what it acknowledged;
            raises if not.
    """

    def __init__(self, url: str, durability: str, *, create: bool) -> None:
        self.place, self._secrets = without_passwords(url)
        try:
            given: dict[str, Any] = {**_DEFAULTS, **conninfo_to_dict(url)}
            self._address = make_conninfo(**given)
        except psycopg.ProgrammingError as error:
            # What libpq says may quote the password, so it is not kept as a cause either.
            why = self._told(error)
            raise Misuse(f"the address {self.place} cannot be read: {why}") from None
        self._asynchronous = durability == "normal"
        self._create = create
        self._uid = ""
        self._former: list[int] = []
        self._key = 0
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self.intact: Callable[[Cursor], None] = lambda _: None
        self.do(lambda _: None)
        self._create = False

    def do(self, work: Callable[[Cursor], T], *, whole: bool = False) -> T:
        """What ``work`` returns; it is called again if it did not come to its end.

        Args:
            work: reads and writes with the cursor that it is given. What it writes must change
                nothing if it has landed before, and it must recognise that.
            whole: all that it writes is one transaction, instead of one for each statement.

        Raises:
            StoreUnavailable, DamagedStore, Misuse: see `chaoskit.runtime.books.Books`.
        """
        repeats = 0
        while True:
            repeats += 1
            try:
                return self._once(work, whole=whole)
            except psycopg.Error as error:
                again = _is_lost(error) or error.sqlstate in _AGAIN
                if not again or repeats > _REPEATS_MAX:
                    raise self._problem(error) from error

    def close(self) -> None:
        """End the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def unavailable(self, why: str) -> StoreUnavailable:
        """The refusal of a store that cannot be used just now."""
        return StoreUnavailable(
            f"the store {self.place} cannot be used: {why}. Nothing that was recorded is lost; the "
            "same run goes on afterwards"
        )

    def damaged(self, why: str) -> DamagedStore:
        """The refusal of tables that are not what this runtime wrote."""
        return announced(
            DamagedStore(
                f"the store {self.place} is damaged: {why}. Restore its schema chaoskit from a "
                "copy; to start over, and do again whatever it recorded, drop the schema yourself"
            )
        )

    def _once(self, work: Callable[[Cursor], T], *, whole: bool) -> T:
        connection = self._there()
        if not whole:
            return work(connection.cursor())
        with connection.transaction():
            return work(connection.cursor())

    def _there(self) -> psycopg.Connection[tuple[Any, ...]]:
        """The connection, or one in place of a lost or interrupted one, which is over by then."""
        connection = self._connection
        if connection is not None:
            if connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE:
                return connection
            self._connection = None
            self._former.append(self._key)
            connection.close()
        connection = self._connect()
        try:
            self._outlive(connection)
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        connection = self._reach()
        key = int.from_bytes(os.urandom(8)) >> 1
        try:
            connection.execute(_SET_UP.format(asynchronous=self._asynchronous, key=key))
        except BaseException:
            connection.close()
            raise
        self._key = key
        return connection

    def _reach(self) -> psycopg.Connection[tuple[Any, ...]]:
        """A new connection; the first one must be had at once, later ones are waited for."""
        until = time.monotonic() + (_RECOVERY_S if self._former else 0.0)
        while True:
            try:
                return psycopg.connect(self._address, autocommit=True, client_encoding="UTF8")
            except psycopg.Error as error:
                if time.monotonic() >= until:
                    raise self.unavailable(
                        f"no connection to the server ({self._told(error)}): start it, or give the "
                        "right address, role and password"
                    ) from error
            Event().wait(_PAUSE_S)  # nothing tells when a server is back

    def _outlive(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        """End the connections that were lost, and wait until they are."""
        while self._former:
            key = self._former[-1]
            connection.execute(_END.format(key=key))
            connection.execute(_WAIT.format(key=key))
            self._former.pop()

    def _check(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        """Refuse what is not a whole store of this format; make one where there is none."""
        if not _exists(connection):
            if self._uid:
                raise self.damaged("its schema chaoskit has gone")
            if not self._create:
                raise FileNotFoundError(f"there is no store of runs at {self.place}")
            with connection.transaction():
                connection.execute(f"SELECT pg_advisory_xact_lock({_CREATORS_KEY})")
                if not _exists(connection):
                    connection.execute(rows.CREATE % {"uid": os.urandom(16).hex()})
        meta = dict(connection.execute(rows.META).fetchall())
        if meta.get("format") != rows.FORMAT:
            raise announced(
                Refused(
                    f"the store {self.place} has format {meta.get('format')}; this version of "
                    f"chaoskit reads format {rows.FORMAT}: use the version that wrote it"
                )
            )
        there = {name for (name,) in connection.execute(rows.THERE)}
        if missing := [name for name in rows.TABLES if name not in there]:
            raise self.damaged(f"it lacks the table {missing[0]}")
        if self._uid and self._uid != meta["uid"]:
            raise self.damaged("it was replaced by another one while this process had it open")
        self._uid = meta["uid"]
        self.intact(connection.cursor())

    def _problem(self, error: psycopg.Error) -> Exception:
        """What an error of the server says about the store."""
        state, why = error.sqlstate or "", self._told(error)
        if state in _DAMAGE:
            return self.damaged(why)
        if state == "54000" or isinstance(error, psycopg.DataError):
            return Misuse(f"PostgreSQL cannot keep this as a text: {why}")
        if _is_lost(error):
            return self.unavailable(f"the connection was lost ({why}): start the server again")
        fix = _FIXES.get(state) or _FIXES.get(state[:2])
        return error if fix is None else self.unavailable(f"{fix} ({why})")

    def _told(self, error: psycopg.Error) -> str:
        """The server's words on one line, without a password."""
        words = " ".join(str(error).split())
        for secret in self._secrets:
            words = words.replace(secret, "…")
        return words


def without_passwords(url: str) -> tuple[str, tuple[str, ...]]:
    """A PostgreSQL URL without its passwords, and these; all the rest stays as it was."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise Misuse(f"the address of a store cannot be read as a URL: {error}") from None
    whose, at, host = parts.netloc.rpartition("@")
    user, _, password = whose.partition(":")
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    kept = [(name, value) for name, value in pairs if "password" not in name.lower()]
    query = parts.query if len(kept) == len(pairs) else urlencode(kept, quote_via=quote)
    secrets = {password, unquote(password)}
    secrets.update(value for name, value in pairs if (name, value) not in kept)
    place = f"{parts.scheme}://{user}{at}{host}{parts.path}" + (f"?{query}" if query else "")
    return place, tuple(sorted(filter(None, secrets), key=len, reverse=True))


def _is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is lost; it has no code where the server did not say so itself."""
    state = error.sqlstate or ""
    return isinstance(error, psycopg.OperationalError) and (
        not state or _LOST.fullmatch(state) is not None
    )


def _exists(connection: psycopg.Connection[tuple[Any, ...]]) -> bool:
    return connection.execute(rows.EXISTS).fetchone() == (True,)
