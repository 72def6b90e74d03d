"""Atomic steps: effect and completion in one transaction, and no marker left behind."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from chaoskit import probe
from chaoskit.runtime import (
    DuplicateStep,
    Misuse,
    OutcomeUnknown,
    Refused,
    UnstorableResult,
    open_run,
    settle,
)

Told = list[tuple[str, ...]]

MODES: dict[str, dict[str, Any]] = {
    "implicit": {},
    "immediate": {"isolation_level": "IMMEDIATE"},
    "autocommit": {"isolation_level": None},
}
if sys.version_info >= (3, 12):
    MODES |= {"autocommit on": {"autocommit": True}, "autocommit off": {"autocommit": False}}


class Stopped(BaseException):
    """Stands for a kill: nothing that a task catches."""


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """A database with an empty table, which the effects are written to."""
    path = tmp_path / "rows.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE row (text)")
    return path


@pytest.fixture
def connection(rows: Path) -> Iterator[sqlite3.Connection]:
    """An ordinary connection to it."""
    with closing(sqlite3.connect(rows)) as connection:
        yield connection


def insert(text: str) -> Callable[[sqlite3.Cursor], str]:
    """A body that writes one row."""

    def body(cursor: sqlite3.Cursor) -> str:
        cursor.execute("INSERT INTO row VALUES (?)", (text,))
        return f"wrote {text}"

    return body


def never(_: sqlite3.Cursor) -> object:
    """A body that must not run."""
    raise AssertionError("the body ran again")


def stop_at(monkeypatch: pytest.MonkeyPatch, crossing: str) -> None:
    """End the process, as it were, at a crossing."""

    def point(name: str) -> None:
        if name == crossing:
            raise Stopped(name)

    monkeypatch.setattr(probe, "point", point)


def written(path: Path) -> list[str]:
    """The rows that somebody else can see."""
    with closing(sqlite3.connect(path)) as connection:
        return [text for (text,) in connection.execute("SELECT text FROM row ORDER BY text")]


def marked(path: Path) -> list[str] | None:
    """The steps that have a marker; None without their table."""
    with closing(sqlite3.connect(path)) as connection:
        if not connection.execute(
            "SELECT 1 FROM sqlite_master WHERE name = 'chaoskit_step'"
        ).fetchall():
            return None
        return [step for (step,) in connection.execute("SELECT step FROM chaoskit_step")]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("crossing", ["a.begin", "a.effect", "a.commit", "a.record"])
def test_a_row_is_written_once_wherever_the_step_is_stopped(
    store: Path, rows: Path, monkeypatch: pytest.MonkeyPatch, mode: str, crossing: str
) -> None:
    """In every transaction mode, a stop at any crossing leaves one row after the resume."""
    with (
        monkeypatch.context() as patch,
        closing(sqlite3.connect(rows, **MODES[mode])) as connection,
    ):
        stop_at(patch, crossing)
        with open_run(store, inputs=None) as run, pytest.raises(Stopped):
            run.atomic_step("a", connection, insert("a"))
    assert len(written(rows)) == (crossing in {"a.commit", "a.record"})
    with (
        closing(sqlite3.connect(rows, **MODES[mode])) as connection,
        open_run(store, inputs=None) as run,
    ):
        assert run.atomic_step("a", connection, insert("a")) == "wrote a"
        assert run.atomic_step("b", connection, insert("b")) == "wrote b"
        run.finish()
    assert written(rows) == ["a", "b"]
    assert marked(rows) is None


@pytest.mark.parametrize("mode", MODES)
def test_the_connection_keeps_its_mode(store: Path, rows: Path, mode: str) -> None:
    """What the caller set before an atomic step is set after it, and writes behave as before."""
    with closing(sqlite3.connect(rows, **MODES[mode])) as connection:
        before = connection.isolation_level, getattr(connection, "autocommit", None)
        with open_run(store, inputs=None) as run:
            run.atomic_step("a", connection, insert("a"))
            with pytest.raises(ZeroDivisionError):
                run.atomic_step("b", connection, lambda _: 1 // 0)
        assert (connection.isolation_level, getattr(connection, "autocommit", None)) == before
        connection.execute("INSERT INTO row VALUES ('later')")
        connection.rollback()
    assert ("later" in written(rows)) is (mode in {"autocommit", "autocommit on"})


def test_factories_of_the_caller_do_not_disturb(
    store: Path, connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The body's cursor returns what the caller set, and the runtime still reads its markers."""
    connection.row_factory = sqlite3.Row
    connection.text_factory = bytes

    def body(cursor: sqlite3.Cursor) -> list[str]:
        row = cursor.execute("SELECT 'x' AS name").fetchone()
        return [type(row).__name__, type(row["name"]).__name__]

    with monkeypatch.context() as patch:
        stop_at(patch, "a.commit")
        with open_run(store, inputs=None) as run, pytest.raises(Stopped):
            run.atomic_step("a", connection, body)
    with open_run(store, inputs=None) as run:
        assert run.atomic_step("a", connection, never) == ["Row", "bytes"]


def test_at_most_one_marker_lingers(
    store: Path, rows: Path, connection: sqlite3.Connection
) -> None:
    """Each atomic step removes the marker before it, and the end of the run the last one."""
    with open_run(store, inputs=None) as run:
        for index in range(5):
            run.atomic_step(f"row/{index}", connection, insert(str(index)))
            assert marked(rows) == [f"row/{index}"]
        run.finish()
    assert marked(rows) is None


def test_a_marker_stays_until_its_step_is_recorded(
    store: Path, rows: Path, connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A marker whose step has no record of its own yet is not removed by another step."""
    with open_run(store, inputs=None) as run:
        with monkeypatch.context() as patch:
            stop_at(patch, "a.commit")
            with pytest.raises(Stopped):
                run.atomic_step("a", connection, insert("a"))
        run.atomic_step("b", connection, insert("b"))
        assert marked(rows) == ["a", "b"]
        assert run.atomic_step("a", connection, never) == "wrote a"
        run.atomic_step("c", connection, insert("c"))
        assert marked(rows) == ["c"]
    assert written(rows) == ["a", "b", "c"]


@pytest.mark.parametrize("crossing", ["a.commit", "a.record", "run.finish"])
def test_the_attempt_that_finishes_need_not_open_the_database(
    store: Path, rows: Path, monkeypatch: pytest.MonkeyPatch, crossing: str
) -> None:
    """The file of each marker is known from before its first commit, so the end finds it."""
    with monkeypatch.context() as patch, closing(sqlite3.connect(rows)) as connection:
        stop_at(patch, crossing)
        with open_run(store, inputs=None, ordered=False) as run, suppress(Stopped):
            run.atomic_step("a", connection, insert("a"))
            run.finish()
    assert marked(rows) == ["a"]
    with open_run(store, inputs=None, ordered=False) as run:
        run.finish()
    assert marked(rows) is None


def test_markers_of_other_runs_stay(
    tmp_path: Path, store: Path, rows: Path, connection: sqlite3.Connection
) -> None:
    """Runs of two stores that write to one database, under one run id, do not meet."""
    with open_run(store, inputs=None) as first, open_run(tmp_path / "2.db", inputs=None) as second:
        first.atomic_step("a", connection, insert("first"))
        second.atomic_step("a", connection, insert("second"))
        first.finish()
        assert marked(rows) == ["a"]
        second.finish()
    assert marked(rows) is None
    assert written(rows) == ["first", "second"]


def test_a_database_that_has_gone_took_its_marker_along(
    store: Path, rows: Path, connection: sqlite3.Connection
) -> None:
    """A run can finish after its effect database was deleted, and does not make a new one."""
    with open_run(store, inputs=None) as run:
        run.atomic_step("a", connection, insert("a"))
        connection.close()
        rows.unlink()
        run.finish()
    assert not rows.exists()


def test_a_locked_database_does_not_finish_the_run(
    store: Path, rows: Path, connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A marker that cannot be removed keeps the run unfinished, and the message says why."""
    connect: Any = sqlite3.connect
    with open_run(store, inputs=None) as run:
        run.atomic_step("a", connection, insert("a"))
        connection.execute("INSERT INTO row VALUES ('open')")
        monkeypatch.setattr(
            sqlite3, "connect", lambda *given, **options: connect(*given, timeout=0, **options)
        )
        with pytest.raises(sqlite3.OperationalError, match="locked") as caught:
            run.finish()
        assert str(rows) in caught.value.__notes__[0]
        connection.commit()
        run.finish()
    assert marked(rows) is None


def test_a_body_that_raises_changed_nothing(
    store: Path, rows: Path, connection: sqlite3.Connection
) -> None:
    """After an exception there is neither row nor marker nor doubt, and the step can be retried."""

    def fail(cursor: sqlite3.Cursor) -> object:
        insert("half")(cursor)
        raise ConnectionError

    with open_run(store, inputs=None) as run:
        with pytest.raises(ConnectionError):
            run.atomic_step("a", connection, fail)
        assert (written(rows), marked(rows), run.in_doubt) == ([], None, ())
        run.atomic_step("a", connection, insert("a"))
        with pytest.raises(DuplicateStep):
            run.atomic_step("a", connection, never)


def test_an_unstorable_result_rolls_back(
    store: Path, rows: Path, connection: sqlite3.Connection
) -> None:
    """Here the effect can still be taken back, and the message says that it was."""

    def body(cursor: sqlite3.Cursor) -> tuple[str, ...]:
        return (insert("a")(cursor),)

    with open_run(store, inputs=None) as run:
        with pytest.raises(UnstorableResult, match="rolled back: nothing happened"):
            run.atomic_step("a", connection, body)
        assert (written(rows), run.in_doubt) == ([], ())


def _commit(cursor: sqlite3.Cursor) -> None:
    cursor.execute("INSERT INTO row VALUES ('a')")
    cursor.execute("COMMIT")


def _script(cursor: sqlite3.Cursor) -> None:
    cursor.executescript("INSERT INTO row VALUES ('a');")


def _roll_back(cursor: sqlite3.Cursor) -> None:
    cursor.execute("ROLLBACK")


@pytest.mark.parametrize("body", [_commit, _script, _roll_back])
@pytest.mark.parametrize("happened", [True, False])
def test_a_body_that_ends_the_transaction_is_in_doubt(
    store: Path,
    rows: Path,
    connection: sqlite3.Connection,
    body: Callable[[sqlite3.Cursor], None],
    happened: bool,
) -> None:
    """A broken promise of the body is noticed, stops the run until settled, and is not repeated."""
    with open_run(store, inputs=None) as run:
        with pytest.raises(Misuse, match=r"ended its transaction.*executescript"):
            run.atomic_step("a", connection, body)
        assert run.in_doubt == ("a",)
        with pytest.raises(OutcomeUnknown):
            run.atomic_step("a", connection, never)
    settle(store, "default", "a", happened=happened)
    with open_run(store, inputs=None) as run:
        if happened:
            assert run.atomic_step("a", connection, never) is None
        else:
            assert run.atomic_step("a", connection, insert("again")) == "wrote again"
        run.atomic_step("b", connection, insert("b"))
        run.finish()
    assert marked(rows) is None
    assert ("again" in written(rows)) is not happened


def test_a_kill_after_the_body_has_committed_is_in_doubt(
    store: Path, rows: Path, connection: sqlite3.Connection
) -> None:
    """A marker without a result is what tells the next attempt that rows may be there."""

    def body(cursor: sqlite3.Cursor) -> None:
        _commit(cursor)
        raise Stopped

    with open_run(store, inputs=None) as run, pytest.raises(Stopped):
        run.atomic_step("a", connection, body)
    assert written(rows) == ["a"]
    for _ in range(2):
        with open_run(store, inputs=None) as run, pytest.raises(OutcomeUnknown) as caught:
            run.atomic_step("a", connection, never)
        assert caught.value.step == "a"


def test_a_marker_of_other_inputs_is_refused(
    store: Path, connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A marker stands for the step with its inputs, as a record does."""
    with monkeypatch.context() as patch:
        stop_at(patch, "a.commit")
        with open_run(store, inputs=None) as run, pytest.raises(Stopped):
            run.atomic_step("a", connection, insert("a"), inputs={"n": 1})
    with (
        open_run(store, inputs=None) as run,
        pytest.raises(Refused, match="step 'a' was recorded with other inputs: field 'n'"),
    ):
        run.atomic_step("a", connection, never, inputs={"n": 2})


@pytest.mark.parametrize("column", ["inputs", "result"])
def test_a_damaged_marker_is_refused(
    store: Path, connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    """A marker that cannot be read back is neither guessed nor redone."""
    with monkeypatch.context() as patch:
        stop_at(patch, "a.commit")
        with open_run(store, inputs=None) as run, pytest.raises(Stopped):
            run.atomic_step("a", connection, insert("a"))
    connection.execute(f"UPDATE chaoskit_step SET {column} = '{{'")  # noqa: S608
    connection.commit()
    with open_run(store, inputs=None) as run, pytest.raises(Refused, match="cannot be restored"):
        run.atomic_step("a", connection, never)


def test_a_connection_with_an_open_transaction_is_refused(
    store: Path, rows: Path, connection: sqlite3.Connection
) -> None:
    """Writes from before the step would join it; the caller decides about them first."""
    connection.execute("INSERT INTO row VALUES ('before')")
    with open_run(store, inputs=None) as run:
        with pytest.raises(Misuse, match="commit or roll it back before"):
            run.atomic_step("a", connection, never)
        connection.rollback()
        run.atomic_step("a", connection, insert("a"))
    assert written(rows) == ["a"]


def test_a_database_in_memory_is_refused(store: Path) -> None:
    """An effect that dies with its process cannot be recorded as done."""
    with (
        closing(sqlite3.connect(":memory:")) as connection,
        open_run(store, inputs=None) as run,
        pytest.raises(Misuse, match="needs a database in a file"),
    ):
        run.atomic_step("a", connection, never)


def test_the_effects_may_be_written_beside_the_records(store: Path) -> None:
    """A task may keep its rows in the very file of its run."""
    with open_run(store, inputs=None) as run, closing(sqlite3.connect(store)) as connection:
        connection.execute("CREATE TABLE row (text)")
        for name in "abc":
            run.atomic_step(name, connection, insert(name))
        run.finish()
    with open_run(store, inputs=None) as run:
        assert run.finished
    assert written(store) == ["a", "b", "c"]
    assert marked(store) is None


def test_a_trial_hears_an_atomic_step_recorded_at_its_commit(
    store: Path, connection: sqlite3.Connection, told: Told
) -> None:
    """From the commit on the step is done, and that is when the trial is told."""
    with open_run(store, inputs=None) as run:
        run.atomic_step("a", connection, lambda _: told.append(("body",)))
        run.finish()
    assert told == [
        *(("point", "a.begin"), ("started", "a"), ("body",), ("point", "a.effect")),
        *(("recorded", "a"), ("point", "a.commit"), ("point", "a.record")),
        *(("point", "run.finish"), ("point", "run.finished")),
    ]
