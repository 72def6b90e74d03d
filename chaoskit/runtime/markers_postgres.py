"""The markers in a PostgreSQL database; see `chaoskit.runtime.markers.Markers` for each function.

Any `psycopg.Connection` will do, autocommit or not, whatever its factories and isolation level. A
step's transaction holds an advisory lock of its run from its first statement on. So whoever comes
after it, in this process or another one, waits until it is decided, also where its connection was
lost at the COMMIT and the server has not yet dealt with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from typing import Any
from urllib.parse import quote, urlencode

from chaoskit.runtime.errors import Misuse
from chaoskit.runtime.fingerprint import Fingerprint
from chaoskit.runtime.markers import Marker

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.rows import tuple_row
except ImportError as error:
    raise Misuse(
        f"an atomic step in PostgreSQL needs psycopg, version 3: pip install chaoskit[postgres] "
        f"({error})"
    ) from error

Connection = psycopg.Connection[Any]

_CREATORS_KEY = 0x6368616F_736B6974
"""As in `store_postgres_session`: whoever makes something in the schema does so alone."""
_CREATE = f"""
SELECT pg_advisory_xact_lock({_CREATORS_KEY});
SELECT FROM pg_class LIMIT 0;
CREATE SCHEMA IF NOT EXISTS chaoskit;
CREATE TABLE IF NOT EXISTS chaoskit.chaoskit_step (
    run text COLLATE "C" NOT NULL, step text COLLATE "C" NOT NULL, inputs text NOT NULL,
    result text, PRIMARY KEY (run, step)
)
"""  # noqa: S608 - our own number
"""Reading a catalogue makes the session forget what it remembered from before it had the lock."""
_EXISTS = "to_regclass('chaoskit.chaoskit_step') IS NOT NULL"
_LOCK = f"SELECT pg_advisory_xact_lock(%s), {_EXISTS}"
_FIND = "SELECT step, inputs, result FROM chaoskit.chaoskit_step WHERE run = %s"
_BEGIN = """
INSERT INTO chaoskit.chaoskit_step (run, step, inputs) VALUES (%s, %s, %s)
ON CONFLICT (run, step) DO UPDATE SET inputs = excluded.inputs, result = NULL
"""
_COMPLETE = """
UPDATE chaoskit.chaoskit_step SET result = %s
WHERE run = %s AND step = %s AND xmin::text = (txid_current() & 4294967295)::text
"""
"""Only in the transaction that began the marker; a row knows the last 32 bits of that."""
_FORGET = "DELETE FROM chaoskit.chaoskit_step WHERE run = %s AND step = %s"
_FORGET_RUN = "DELETE FROM chaoskit.chaoskit_step WHERE run = %s"

_IDLE = psycopg.pq.TransactionStatus.IDLE


def file_of(connection: Connection) -> str:
    """The URL of the database behind ``connection``, without its password."""
    if not isinstance(connection, psycopg.Connection):
        raise Misuse(
            f"an atomic step needs a psycopg.Connection, not {type(connection).__qualname__}: its "
            "body is called, not awaited"
        )
    if connection.closed:
        raise Misuse("the connection of an atomic step is closed: give one that is open")
    # libpq's own account of it, which leaves out passwords and what has its default value.
    known = {name: str(value) for name, value in conninfo_to_dict(connection.info.dsn).items()}
    user, host = known.pop("user", ""), known.pop("host", "")
    known.pop("port", None), known.pop("dbname", None)
    whose = f"{quote(user, safe='')}@" if user else ""
    place = f"{whose}{quote(host, safe=':,')}:{connection.info.port}"
    rest = urlencode(sorted(known.items()), quote_via=quote)
    name = quote(connection.info.dbname, safe="")
    return f"postgresql://{place}/{name}" + (f"?{rest}" if rest else "")


@contextmanager
def transaction(connection: Connection, uid: str) -> Iterator[None]:
    """One transaction, in psycopg's own block: the body's `commit` is an error there, and undone.

    Where the table of the markers is missing it is made first, in a transaction of its own.
    """
    if connection.info.transaction_status is not _IDLE:
        raise Misuse(
            "this connection has a transaction open, and its writes would be repeated or lost "
            "apart from the step: commit or roll it back before an atomic step. A SELECT opens "
            "one, too, unless the connection is in autocommit mode"
        )
    try:
        made = False
        with connection.transaction():
            made = _lock(connection, uid)
            if made:
                yield
        if not made:
            with connection.transaction():
                _cursor(connection).execute(_CREATE)
            with connection.transaction():
                _lock(connection, uid)
                yield
    except psycopg.OperationalError as error:
        if connection.closed:
            error.add_note(
                "whether the atomic step was committed is not known yet: take it again with a new "
                "connection, in this attempt or the next one, and its marker tells"
            )
        raise


def of_run(connection: Connection, uid: str) -> dict[str, Marker]:
    """The markers of a run, by step."""
    found = _cursor(connection).execute(_FIND, (uid,)).fetchall()
    return {step: Marker(step, json.loads(inputs), result) for step, inputs, result in found}


def begin(connection: Connection, uid: str, step: str, inputs: Fingerprint) -> None:
    """Write a marker without a result, before the body."""
    _cursor(connection).execute(_BEGIN, (uid, step, json.dumps(dict(inputs))))


def complete(connection: Connection, uid: str, step: str, result: str) -> bool:
    """Give the marker its result; False if the body ended the transaction that `begin` was in."""
    if connection.info.transaction_status is _IDLE:
        return False
    return _cursor(connection).execute(_COMPLETE, (result, uid, step)).rowcount == 1


def forget(connection: Connection, uid: str, step: str) -> None:
    """Remove the marker of a step whose own record is durable."""
    _cursor(connection).execute(_FORGET, (uid, step))


def forget_run(file: str, uid: str, known: Connection | None) -> None:
    """Remove what is left of a run's markers; their table stays, because others may be using it.

    A connection that is ``known`` and idle is used; else a new one, for which a password has to
    come from where libpq looks for it, since none is recorded.
    """
    if known is not None and not known.closed and known.info.transaction_status is _IDLE:
        _forget_all(known, uid)
        return
    try:
        with closing(psycopg.connect(file)) as connection:
            _forget_all(connection, uid)
    except psycopg.Error as error:
        error.add_note(
            f"the marker of the last atomic step could not be removed from {file}: see that it can "
            "be reached (a password from PGPASSFILE or PGPASSWORD), then finish again"
        )
        raise


def _forget_all(connection: Connection, uid: str) -> None:
    with connection.transaction():
        (found,) = _cursor(connection).execute(_LOCK, (_key(uid),)).fetchall()
        if found[1]:
            _cursor(connection).execute(_FORGET_RUN, (uid,))


def _lock(connection: Connection, uid: str) -> bool:
    """Wait until no other step of the run is in its transaction; whether there is the table."""
    (found,) = _cursor(connection).execute(_LOCK, (_key(uid),)).fetchall()
    return bool(found[1])


def _key(uid: str) -> int:
    return int.from_bytes(sha256(uid.encode()).digest()[:8], signed=True)


def _cursor(connection: Connection) -> psycopg.Cursor[tuple[Any, ...]]:
    """A cursor that gives tuples, whatever factories the caller has set."""
    return psycopg.Cursor(connection, row_factory=tuple_row)
