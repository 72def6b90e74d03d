"""Atomic steps in PostgreSQL: effect and completion in one transaction, on any connection."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from chaoskit import probe
from chaoskit.runtime import (
    Misuse,
    OutcomeUnknown,
    Refused,
    UnstorableResult,
    markers_postgres,
    open_run,
    settle,
)
from chaoskit.runtime.fingerprint import fingerprint
from tests.fake_services.postgres_running import Running, needs_postgres
from tests.runtime.servers import Address, OwnServer, column

pytestmark = needs_postgres

Connection = psycopg.Connection[Any]
Cursor = psycopg.Cursor[Any]

ISOLATION = psycopg.IsolationLevel


class Stopped(BaseException):
    """Stands for a kill: nothing that a task catches."""


@pytest.fixture
def rows(databases: OwnServer) -> Address:
    """A database with an empty table, which the effects are written to."""
    address = databases.empty()
    with psycopg.connect(address) as client:
        client.execute("CREATE TABLE row (text text)")
    return address


@pytest.fixture(params=[False, True], ids=["blocks", "autocommit"])
def connection(rows: Address, request: pytest.FixtureRequest) -> Iterator[Connection]:
    """A connection to it, in either mode."""
    with psycopg.connect(rows, autocommit=request.param) as connection:
        yield connection


@pytest.fixture(params=["sqlite", "the same database"])
def place(rows: Address, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Where the run is recorded."""
    return rows if request.param != "sqlite" else str(tmp_path / "run.db")


def insert(text: str) -> Callable[[Cursor], str]:
    """A body that writes one row."""

    def body(cursor: Cursor) -> str:
        cursor.execute("INSERT INTO row VALUES (%s)", (text,))
        return f"wrote {text}"

    return body


def never(_: Cursor) -> object:
    """A body that must not run."""
    raise AssertionError("the body ran again")


def stop_at(monkeypatch: pytest.MonkeyPatch, crossing: str) -> None:
    """End the process, as it were, at a crossing."""

    def point(name: str) -> None:
        if name == crossing:
            raise Stopped(name)

    monkeypatch.setattr(probe, "point", point)


def written(address: str) -> list[str]:
    """The rows."""
    return column(address, "SELECT text FROM row ORDER BY text")


def marked(address: str) -> list[str]:
    """The steps that have a marker."""
    return column(address, "SELECT step FROM chaoskit.chaoskit_step ORDER BY step")


@pytest.mark.parametrize("crossing", ["a.begin", "a.effect", "a.commit", "a.record"])
def test_a_row_is_written_once_wherever_the_step_is_stopped(
    place: str,
    rows: Address,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    crossing: str,
) -> None:
    """In either mode, a stop at any crossing leaves one row after the resume, and no marker."""
    with monkeypatch.context() as patch:
        stop_at(patch, crossing)
        with open_run(place, inputs=None) as run, pytest.raises(Stopped):
            run.atomic_step("a", connection, insert("a"))
    assert len(written(rows)) == (crossing in {"a.commit", "a.record"})
    with open_run(place, inputs=None) as run:
        assert run.atomic_step("a", connection, insert("a")) == "wrote a"
        assert run.atomic_step("b", connection, insert("b")) == "wrote b"
        assert marked(rows) == ["b"]
        run.finish()
    assert (written(rows), marked(rows)) == (["a", "b"], [])


def test_the_connection_keeps_its_mode(place: str, rows: Address, connection: Connection) -> None:
    """It is idle afterwards, also after a body that raised, and writes behave as before."""
    before = connection.autocommit
    with open_run(place, inputs=None) as run:
        run.atomic_step("a", connection, insert("a"))
        with pytest.raises(ZeroDivisionError):
            run.atomic_step("b", connection, lambda _: 1 // 0)
    assert connection.autocommit is before
    assert connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
    connection.execute("INSERT INTO row VALUES ('later')")
    connection.rollback()
    assert ("later" in written(rows)) is before


def test_factories_of_the_caller_do_not_disturb(
    place: str, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The body's cursor is the caller's kind, and the runtime still reads its markers."""
    connection.row_factory = dict_row
    connection.cursor_factory = psycopg.ClientCursor

    def body(cursor: Cursor) -> list[str]:
        row = cursor.execute("SELECT 'x' AS name").fetchone()
        return [type(cursor).__name__, type(row).__name__]

    with monkeypatch.context() as patch:
        stop_at(patch, "a.commit")
        with open_run(place, inputs=None) as run, pytest.raises(Stopped):
            run.atomic_step("a", connection, body)
    with open_run(place, inputs=None) as run:
        assert run.atomic_step("a", connection, never) == ["ClientCursor", "dict"]


def test_a_savepoint_is_the_bodys_own_affair(
    place: str, rows: Address, connection: Connection
) -> None:
    """What a body takes back to a savepoint is gone, and the rest lands with the completion."""

    def body(cursor: Cursor) -> None:
        insert("kept")(cursor)
        with suppress(ZeroDivisionError), cursor.connection.transaction():
            insert("taken back")(cursor)
            raise ZeroDivisionError
        with suppress(psycopg.Error), cursor.connection.transaction():
            cursor.execute("SELECT 1 / 0")

    with open_run(place, inputs=None) as run:
        run.atomic_step("a", connection, body)
    assert (written(rows), marked(rows)) == (["kept"], ["a"])


def _commit(cursor: Cursor) -> None:
    insert("a")(cursor)
    cursor.execute("COMMIT")


def _commit_and_begin(cursor: Cursor) -> None:
    _commit(cursor)
    cursor.execute("BEGIN")
    insert("b")(cursor)


def _commit_and_go_on(cursor: Cursor) -> None:
    _commit(cursor)
    cursor.connection.execute("SELECT 1")


@pytest.mark.parametrize("body", [_commit, _commit_and_begin, _commit_and_go_on])
def test_a_body_that_commits_is_in_doubt(
    place: str, rows: Address, connection: Connection, body: Callable[[Cursor], None]
) -> None:
    """A broken promise is noticed, also behind a new BEGIN; it stops the run until settled."""
    with open_run(place, inputs=None) as run:
        with pytest.raises(Misuse, match=r"ended its transaction"):
            run.atomic_step("a", connection, body)
        connection.rollback()
        with pytest.raises(OutcomeUnknown):
            run.atomic_step("a", connection, never)
    assert written(rows) == ["a"]
    settle(place, "default", "a", happened=True)
    with open_run(place, inputs=None) as run:
        assert run.atomic_step("a", connection, never) is None
        run.finish()
    assert marked(rows) == []


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_body_that_calls_the_connections_own_end_changed_nothing(
    place: str, rows: Address, connection: Connection, end: str
) -> None:
    """psycopg itself forbids that in a block, and what was written is rolled back."""

    def body(cursor: Cursor) -> None:
        insert("a")(cursor)
        getattr(cursor.connection, end)()

    with open_run(place, inputs=None) as run:
        with pytest.raises(psycopg.ProgrammingError, match="forbidden"):
            run.atomic_step("a", connection, body)
        assert (written(rows), run.in_doubt) == ([], ())
        run.atomic_step("a", connection, insert("a"))
    assert written(rows) == ["a"]


def test_an_error_that_the_body_swallows_is_not_taken_for_success(
    place: str, rows: Address, connection: Connection
) -> None:
    """PostgreSQL would turn the COMMIT of a failed transaction into a rollback, without a word."""

    def body(cursor: Cursor) -> None:
        insert("a")(cursor)
        with suppress(psycopg.Error):
            cursor.execute("SELECT 1 / 0")

    with open_run(place, inputs=None) as run:
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            run.atomic_step("a", connection, body)
        assert (written(rows), run.in_doubt) == ([], ())


def test_a_constraint_that_fails_at_the_commit_changed_nothing(
    place: str, rows: Address, connection: Connection
) -> None:
    """The step is not done, and can be taken again."""
    with psycopg.connect(rows) as client:
        client.execute("ALTER TABLE row ADD UNIQUE (text) DEFERRABLE INITIALLY DEFERRED")

    def twice(cursor: Cursor) -> None:
        insert("a")(cursor)
        insert("a")(cursor)

    with open_run(place, inputs=None) as run:
        with pytest.raises(psycopg.errors.UniqueViolation):
            run.atomic_step("a", connection, twice)
        run.atomic_step("a", connection, insert("a"))
    assert written(rows) == ["a"]


def test_an_unstorable_result_rolls_back(place: str, rows: Address, connection: Connection) -> None:
    """Here the effect can still be taken back, and the message says that it was."""

    def body(cursor: Cursor) -> tuple[str, ...]:
        return (insert("a")(cursor),)

    with open_run(place, inputs=None) as run:
        with pytest.raises(UnstorableResult, match="rolled back: nothing happened"):
            run.atomic_step("a", connection, body)
        assert written(rows) == []


def test_a_marker_of_other_inputs_is_refused(
    place: str, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A marker stands for the step with its inputs, as a record does."""
    with monkeypatch.context() as patch:
        stop_at(patch, "a.commit")
        with open_run(place, inputs=None) as run, pytest.raises(Stopped):
            run.atomic_step("a", connection, insert("a"), inputs={"n": 1})
    with (
        open_run(place, inputs=None) as run,
        pytest.raises(Refused, match="step 'a' was recorded with other inputs: field 'n'"),
    ):
        run.atomic_step("a", connection, never, inputs={"n": 2})


def test_a_connection_with_an_open_transaction_is_refused(place: str, rows: Address) -> None:
    """Its writes would join the step; the message says that a SELECT opens one, too."""
    with psycopg.connect(rows) as connection, open_run(place, inputs=None) as run:
        connection.execute("SELECT 1")
        with pytest.raises(Misuse, match=r"commit or roll it back before .* A SELECT opens one"):
            run.atomic_step("a", connection, never)
        connection.rollback()
        run.atomic_step("a", connection, insert("a"))


def test_what_is_no_open_connection_is_refused(place: str, rows: Address) -> None:
    """The message names the two kinds, and what was given."""
    closed = psycopg.connect(rows)
    closed.close()
    with open_run(place, inputs=None) as run:
        with pytest.raises(Misuse, match="is closed: give one that is open"):
            run.atomic_step("a", closed, never)
        with pytest.raises(Misuse, match=r"of sqlite3 or of psycopg .* not builtins.str"):
            run.atomic_step("a", "postgresql://x", never)  # type: ignore[arg-type]


@pytest.mark.parametrize("crossing", ["a.commit", "a.record", "run.finish"])
def test_the_attempt_that_finishes_need_not_open_the_database(
    tmp_path: Path, rows: Address, monkeypatch: pytest.MonkeyPatch, crossing: str
) -> None:
    """The address of each marker is known from before its first commit, so the end finds it."""
    store = tmp_path / "run.db"
    with monkeypatch.context() as patch, psycopg.connect(rows) as connection:
        stop_at(patch, crossing)
        with open_run(store, inputs=None, ordered=False) as run, suppress(Stopped):
            run.atomic_step("a", connection, insert("a"))
            run.finish()
    assert marked(rows) == ["a"]
    with open_run(store, inputs=None, ordered=False) as run:
        run.finish()
    assert marked(rows) == []


def test_the_address_of_a_marker_leads_there_and_has_no_password(rows: Address) -> None:
    """It is what a later attempt connects to."""
    with psycopg.connect(rows, password="s3cret", application_name="a b&c") as connection:
        file = markers_postgres.file_of(connection)
    assert "s3cret" not in file
    with psycopg.connect(file) as again:
        assert again.execute("SELECT count(*) FROM row").fetchone() == (0,)
        assert again.info.parameter_status("application_name") == "a b&c"


def test_an_unreachable_database_does_not_finish_the_run(tmp_path: Path, rows: Address) -> None:
    """A marker that cannot be removed keeps the run unfinished, and a note says what to do."""
    with psycopg.connect(rows) as connection, open_run(tmp_path / "r.db", inputs=None) as run:
        run.atomic_step("a", connection, insert("a"))
        run._atomic._known.clear()
        run._atomic._files = {"postgresql://nobody@%2Fnowhere/x"}
        with pytest.raises(psycopg.OperationalError) as caught:
            run.finish()
        assert "PGPASSFILE" in caught.value.__notes__[0]
        run._atomic._files = {markers_postgres.file_of(connection)}
        run.finish()
    assert marked(rows) == []


LATER = """
import sys, psycopg
from chaoskit.runtime import open_run
with open_run(sys.argv[1], inputs=None) as run, psycopg.connect(sys.argv[2]) as connection:
    connection.isolation_level = psycopg.IsolationLevel[sys.argv[3]] if sys.argv[3] else None
    print("asks", flush=True)
    run.atomic_step("a", connection, lambda c: c.execute("INSERT INTO row VALUES ('x')") and None)
"""


@pytest.mark.parametrize("level", ["", ISOLATION.REPEATABLE_READ.name, ISOLATION.SERIALIZABLE.name])
def test_who_resumes_waits_for_a_commit_that_is_still_under_way(
    tmp_path: Path, rows: Address, level: str
) -> None:
    """The former attempt's transaction is open in the server, though its process is gone: the next
    one waits until it is decided, and does not write the row a second time.
    """
    with open_run(tmp_path / "run.db", inputs=None) as run:
        uid = run._journal.run.uid
    with psycopg.connect(rows) as former:
        with former.transaction():
            former.execute(markers_postgres._CREATE)
        former.execute(markers_postgres._LOCK, (markers_postgres._key(uid),))
        markers_postgres.begin(former, uid, "a", fingerprint(None))
        insert("x")(former.cursor())
        assert markers_postgres.complete(former, uid, "a", "null")
        words = [sys.executable, "-c", LATER, str(tmp_path / "run.db"), rows, level]
        later = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        with psycopg.connect(rows, autocommit=True) as watcher:
            while watcher.execute(waits).fetchone() == (0,):
                assert later.poll() is None, later.communicate()
        former.commit()
        _, errors = later.communicate()
    assert later.returncode == 0 or "could not serialize" in errors, errors
    assert written(rows) == ["x"]


@pytest.mark.parametrize("window", ["received", "applied"])
def test_a_commit_whose_acknowledgement_is_lost_is_found_by_its_marker(
    tmp_path: Path, window: str
) -> None:
    """The error says that nobody knows; the same call with a new connection does, on both sides."""
    running = Running(tmp_path / "pg", "CREATE TABLE row (text text)")
    try:
        with open_run(tmp_path / "run.db", inputs=None) as run:
            with running.connect() as warm:
                run.atomic_step("warm", warm, insert("w"))
            running.notes.on = lambda text: not text.startswith(window)
            with pytest.raises(psycopg.OperationalError) as caught:
                run.atomic_step("a", running.connect(), insert("a"))
            assert "whether the atomic step was committed" in caught.value.__notes__[0]
            running.notes.on = lambda _: True
            with running.connect() as again:
                assert run.atomic_step("a", again, insert("a")) == "wrote a"
                run.finish()
        assert running.rows("SELECT text FROM row ORDER BY text") == [("a",), ("w",)]
        assert running.rows("SELECT * FROM chaoskit.chaoskit_step") == []
    finally:
        running.stop()
