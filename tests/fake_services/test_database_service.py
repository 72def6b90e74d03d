"""The database service with the standard library's client, and with processes that are killed."""

# ruff: noqa: S608 - the statements are the tests' own

from __future__ import annotations

import asyncio
import math
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.behaviours import parse_behaviour
from chaoskit.model.effects import Effect
from chaoskit.model.errors import ScenarioError, UsageError
from chaoskit.model.hosting import Address, RequestInfo, ServiceSettings
from chaoskit.model.secrets import is_secret_name
from fake_services.database.books import in_words
from fake_services.database.service import DatabaseService, create

TABLES = """
CREATE TABLE receipts (id INTEGER PRIMARY KEY, customer TEXT UNIQUE, amount INTEGER);
CREATE TABLE parts (a TEXT, b INTEGER, note TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE TABLE log (line TEXT, made TEXT DEFAULT CURRENT_TIMESTAMP);
"""


class Nobody:
    """An observer that must not be told anything."""

    def received(self, request: RequestInfo) -> int | None:
        """Fail."""
        raise AssertionError

    def applied(self, number: int, effects: Sequence[Effect]) -> bool:
        """Fail."""
        raise AssertionError

    def answering(self, number: int) -> None:
        """Fail."""
        raise AssertionError

    def answered(self, number: int, status: int, *, deduped: bool, delivered: bool) -> None:
        """Fail."""
        raise AssertionError

    def landed(self, number: int, effects: Sequence[Effect]) -> None:
        """Later than its sender thinks."""


def started(
    folder: Path, tables: str = TABLES, **options: Any
) -> tuple[DatabaseService, Callable[[], sqlite3.Connection]]:
    """A fresh database and what opens it as a task would."""
    service = DatabaseService(**options)
    settings = ServiceSettings(folder, options={"tables": tables})
    path = address(service, settings).placeholders["path"]
    return service, lambda: sqlite3.connect(path)


def address(service: DatabaseService, settings: ServiceSettings) -> Address:
    """Start ``service``."""
    return asyncio.run(service.start(Nobody(), settings))


def run(open_database: Callable[[], sqlite3.Connection], *statements: str) -> None:
    """What a task does in one transaction."""
    with closing(open_database()) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def kinds(effects: Any) -> list[str]:
    """The kinds of effects, in order."""
    return [effect.kind for effect in effects]


def fields(effect: Effect) -> Mapping[str, str]:
    """The fields of an effect by name."""
    return dict(effect.fields)


def test_rows_are_booked_as_they_change(tmp_path: Path) -> None:
    """An insert, an update and a delete are three effects in order, each with its row."""
    service, task = started(tmp_path)
    run(task, "INSERT INTO receipts(customer, amount) VALUES ('Ann', 5)")
    run(task, "UPDATE receipts SET amount = 6")
    run(task, "DELETE FROM receipts")
    inserted, updated, deleted = service.collect()
    assert inserted == Effect(
        service="database",
        kind="receipts.insert",
        fields=(("amount", "5"), ("customer", "Ann")),
        who="Ann",
        what="row inserted in receipts",
        ref="1",
    )
    assert updated.kind == "receipts.update"
    assert fields(updated) == {"amount": "6", "customer": "Ann", "was.amount": "5"}
    assert deleted.kind == "receipts.delete"
    assert fields(deleted) == {"amount": "6", "customer": "Ann"}


@pytest.mark.parametrize("mode", ["DELETE", "WAL", "TRUNCATE", "PERSIST"])
def test_a_rolled_back_row_is_in_no_book(tmp_path: Path, mode: str) -> None:
    """What the task takes back has no effect, in any journal mode, and the mode stays as it was."""
    service, task = started(tmp_path)
    with closing(task()) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("INSERT INTO log(line) VALUES ('kept')")
        connection.commit()
        connection.execute("INSERT INTO log(line) VALUES ('taken back')")
        connection.rollback()
    assert [fields(effect) for effect in service.collect()] == [{"line": "kept"}]
    with closing(task()) as connection:
        found = connection.execute("PRAGMA journal_mode").fetchone()[0].upper()
    assert found == ("WAL" if mode == "WAL" else "DELETE")


KILLED = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = " + sys.argv[2])
connection.execute("PRAGMA cache_size = 1")
connection.execute("INSERT INTO log(line) VALUES ('before')")
connection.execute("BEGIN")
for n in range(2000):
    connection.execute("INSERT INTO log(line) VALUES (?)", (str(n) * 50,))
if sys.argv[3] == "committed":
    connection.execute("COMMIT")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
@pytest.mark.parametrize(("end", "rows"), [("open", 1), ("committed", 2001)])
def test_a_kill_leaves_a_row_and_its_booking_or_neither(
    tmp_path: Path, mode: str, end: str, rows: int
) -> None:
    """After SIGKILL inside a transaction neither is there, not even if pages were written."""
    service, _ = started(tmp_path)
    command = [sys.executable, "-c", KILLED, str(tmp_path / "database.sqlite"), mode, end]
    assert subprocess.run(command, timeout=300).returncode == -signal.SIGKILL
    if end == "open" and mode == "DELETE":
        assert (tmp_path / "database.sqlite-journal").stat().st_size > 0
    assert len(service.collect()) == len(service.contents()["log"]) == rows


_values = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False).map(lambda number: number + 0.0)  # SQLite has one zero
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary()
)
_names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1
).filter(lambda name: not is_secret_name(name))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all examples of a property."""
    return tmp_path_factory.mktemp("database")


@given(
    table=_names.filter(lambda name: not name.lower().startswith(("sqlite_", "chaoskit_"))),
    columns=st.lists(_names, min_size=1, max_size=5, unique_by=str.upper),
    data=st.data(),
)
def test_any_row_is_booked_as_it_is(
    folder: Path, table: str, columns: list[str], data: st.DataObject
) -> None:
    """Whatever the names and the values, the ledger holds the row that was written."""
    row = data.draw(st.tuples(*[_values for _ in columns]))
    name, *cells = ('"' + text.replace('"', '""') + '"' for text in (table, *columns))
    service, task = started(folder, f"CREATE TABLE {name} ({', '.join(cells)})")
    with closing(task()) as connection:
        marks = ", ".join("?" for _ in row)
        connection.execute(f"INSERT INTO {name} VALUES ({marks})", row)
        connection.commit()
    (effect,) = service.collect()
    assert effect.kind == f"{table}.insert"
    assert sorted(effect.fields) == sorted(
        (column, in_words(value)) for column, value in zip(columns, row, strict=True)
    )
    assert service.contents() == {table: [dict(zip(columns, row, strict=True))]}


@given(
    writes=st.lists(
        st.tuples(
            st.sampled_from(
                [
                    "INSERT INTO t(k, v) VALUES (:k, :v)",
                    "INSERT OR IGNORE INTO t(k, v) VALUES (:k, :v)",
                    "INSERT OR REPLACE INTO t(k, v) VALUES (:k, :v)",
                    "INSERT OR REPLACE INTO t(id, k, v) VALUES (:v, :k, :v)",
                    "INSERT INTO t(k, v) VALUES (:k, :v) ON CONFLICT(k) DO UPDATE SET v = :v",
                    "UPDATE t SET v = :v WHERE k = :k",
                    "UPDATE OR REPLACE t SET k = :v WHERE k = :k",
                    "DELETE FROM t WHERE k = :k",
                    "DELETE FROM t",
                ]
            ),
            st.integers(1, 3),
            st.integers(1, 3),
            st.booleans(),
        ),
        max_size=12,
    )
)
def test_the_books_account_for_the_rows(
    folder: Path, writes: list[tuple[str, int, int, bool]]
) -> None:
    """Inserts and updates less deletes and old values are the rows, whatever was replaced."""
    service, task = started(folder, "CREATE TABLE t (id INTEGER PRIMARY KEY, k UNIQUE, v)")
    with closing(task()) as connection:
        for statement, k, v, keep in writes:
            try:
                connection.execute(statement, {"k": k, "v": v})
            except sqlite3.IntegrityError:
                connection.rollback()
            connection.commit() if keep else connection.rollback()
    net: Counter[tuple[str, str]] = Counter()
    for effect in service.collect():
        now = fields(effect)
        pair = (now["k"], now["v"])
        net[pair] += -1 if effect.kind == "t.delete" else 1
        if effect.kind == "t.update":
            net[now.get("was.k", now["k"]), now.get("was.v", now["v"])] -= 1
    rows = Counter((str(row["k"]), str(row["v"])) for row in service.contents()["t"])
    assert {pair: n for pair, n in net.items() if n} == dict(rows)


def test_replace_is_no_second_insert(tmp_path: Path) -> None:
    """INSERT OR REPLACE, which fires no delete trigger, is an update or, unchanged, nothing."""
    service, task = started(tmp_path)
    again = "INSERT OR REPLACE INTO receipts(customer, amount) VALUES ('Ann', {})"
    for amount in (5, 5, 6):
        run(task, again.format(amount))
    inserted, updated = service.collect()
    assert kinds([inserted, updated]) == ["receipts.insert", "receipts.update"]
    assert fields(updated)["was.amount"] == "5"


def test_an_update_that_replaces_another_row_deletes_it(tmp_path: Path) -> None:
    """UPDATE OR REPLACE into a taken key is an update of one row and a delete of the other."""
    service, task = started(tmp_path)
    run(task, "INSERT INTO receipts(customer, amount) VALUES ('Ann', 1), ('Bob', 2)")
    run(task, "UPDATE OR REPLACE receipts SET customer = 'Bob' WHERE customer = 'Ann'")
    *_, deleted, updated = service.collect()
    assert (deleted.kind, fields(deleted)) == (
        "receipts.delete",
        {"customer": "Ann", "amount": "1"},
    )
    assert fields(updated) == {"customer": "Bob", "amount": "1", "was.amount": "2"}


def test_an_index_that_is_only_partly_unique_replaces_nothing(tmp_path: Path) -> None:
    """Rows outside a partial index, or equal only in part of an expression, are all inserts."""
    service, task = started(
        tmp_path,
        "CREATE TABLE t (k, v, n);"
        "CREATE UNIQUE INDEX open_only ON t(k) WHERE v = 'open';"
        "CREATE UNIQUE INDEX computed ON t(k, lower(v) || n);",
    )
    run(task, "INSERT INTO t VALUES (1, 'done', 1), (1, 'done', 2), (1, 'open', 3)")
    assert kinds(service.collect()) == ["t.insert"] * 3


def test_replace_with_recursive_triggers_is_an_update(tmp_path: Path) -> None:
    """Where the connection lets REPLACE fire delete triggers, the books say the same."""
    service, task = started(tmp_path)
    again = "INSERT OR REPLACE INTO receipts(customer, amount) VALUES ('Ann', {})"
    for amount in (5, 5, 6):
        run(task, "PRAGMA recursive_triggers = ON", again.format(amount))
    assert kinds(service.collect()) == ["receipts.insert", "receipts.update"]


def test_an_upsert_is_an_insert_and_then_an_update(tmp_path: Path) -> None:
    """ON CONFLICT DO UPDATE books what it really did; DO NOTHING books nothing."""
    service, task = started(tmp_path)
    insert = "INSERT INTO receipts(customer, amount) VALUES ('Ann', {}) ON CONFLICT(customer) DO "
    for amount, then in ((5, "NOTHING"), (5, "NOTHING"), (6, "UPDATE SET amount = 6")):
        run(task, insert.format(amount) + then)
    assert kinds(service.collect()) == ["receipts.insert", "receipts.update"]


def test_given_and_made_up_keys_are_told_apart(tmp_path: Path) -> None:
    """In one statement a key from the task is a field and one from SQLite is not."""
    service, task = started(tmp_path)
    run(
        task,
        "INSERT INTO receipts(id, customer) VALUES (7, 'a'), (NULL, 'b'), (5, 'c'), (NULL, 'd')",
        "INSERT INTO receipts(customer) SELECT 'e'",
    )
    assert [fields(effect).get("id") for effect in service.collect()] == [
        "7",
        None,
        "5",
        None,
        None,
    ]


def test_what_sqlite_shows_the_task_is_untouched(tmp_path: Path) -> None:
    """The row id, the count of changes and RETURNING are those of the task's own statement."""
    _, task = started(tmp_path)
    with closing(task()) as connection:
        cursor = connection.execute("INSERT INTO receipts(customer) VALUES ('Ann'), ('Bob')")
        assert (cursor.lastrowid, cursor.rowcount) == (2, 2)
        returned = connection.execute("UPDATE receipts SET amount = 1 RETURNING id").fetchall()
        assert returned == [(1,), (2,)]


def test_rows_from_the_start_are_not_effects(tmp_path: Path) -> None:
    """Rows that the scenario put there are not booked, but changing them is."""
    service, task = started(tmp_path, TABLES + "INSERT INTO log(line) VALUES ('first')")
    assert service.collect() == ()
    run(task, "UPDATE log SET line = 'changed'")
    assert kinds(service.collect()) == ["log.update"]


def test_collect_gives_each_effect_once_and_the_ledger_gives_all(tmp_path: Path) -> None:
    """A second look finds only what is new, whether or not somebody read the ledger meanwhile."""
    service, task = started(tmp_path)
    lines = []
    for n in range(3):
        run(task, f"INSERT INTO log(line) VALUES ({n})")
        if n == 1:
            service.ledger()
        lines.append([fields(effect)["line"] for effect in service.collect()])
    assert lines == [["0"], ["1"], ["2"]]
    assert len(service.ledger()) == 3
    assert service.collect() == ()


def test_looking_does_not_write(tmp_path: Path) -> None:
    """A look that finds nothing new leaves the file as it is, to the byte."""
    service, task = started(tmp_path)
    run(task, "INSERT INTO log(line) VALUES (1)")
    path = tmp_path / "database.sqlite"
    before = path.read_bytes()
    service.collect()
    service.collect()
    assert path.read_bytes() == before


def test_reset_is_a_new_world(tmp_path: Path) -> None:
    """Rows, books and what SQLite left beside the file are gone; ids start again."""
    service, task = started(tmp_path)
    for _ in range(2):
        connection = task()
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("INSERT INTO receipts(customer) VALUES ('Ann')")
        connection.commit()
        assert [effect.ref for effect in service.collect()] == ["1"]
        assert (tmp_path / "database.sqlite-wal").exists()
        service.reset(1, ())
        assert not (tmp_path / "database.sqlite-wal").exists()
        connection.close()
        service.reset(1, ())
        assert (service.collect(), service.ledger()) == ((), ())


def test_tables_of_the_task_are_booked_from_their_rows_and_then_by_trigger(tmp_path: Path) -> None:
    """Without declared tables the task finds no file, and its rows are found after the attempt."""
    service, task = started(tmp_path, "")
    assert not (tmp_path / "database.sqlite").exists()
    assert service.collect() == ()
    run(task, "CREATE TABLE jobs (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT)")
    run(task, "INSERT INTO jobs(name) VALUES ('a'), ('b')")
    assert [fields(effect) for effect in service.collect()] == [{"name": "a"}, {"name": "b"}]
    run(task, "INSERT INTO jobs(name) VALUES ('c')", "DELETE FROM jobs WHERE name = 'a'")
    assert kinds(service.collect()) == ["jobs.insert", "jobs.delete"]
    assert "jobs.update" in service.operations


def test_a_rebuilt_table_is_not_booked_again(tmp_path: Path) -> None:
    """The copy-and-rename of a migration drops the triggers; the rows are known all the same."""
    service, task = started(tmp_path)
    run(task, "INSERT INTO receipts(customer) VALUES ('Ann')")
    run(
        task,
        "CREATE TABLE fresh (id INTEGER PRIMARY KEY, customer TEXT UNIQUE, amount INTEGER)",
        "INSERT INTO fresh SELECT * FROM receipts",
        "DROP TABLE receipts",
        "ALTER TABLE fresh RENAME TO receipts",
    )
    assert kinds(service.collect()) == ["receipts.insert"]
    run(task, "INSERT INTO receipts(customer) VALUES ('Bob')")
    assert kinds(service.collect()) == ["receipts.insert"]


def test_triggers_follow_the_table(tmp_path: Path) -> None:
    """After an attempt that added a column and renamed a table both are booked as they are now."""
    service, task = started(tmp_path)
    run(task, "ALTER TABLE log ADD COLUMN level", "ALTER TABLE log RENAME TO lines")
    assert service.collect() == ()
    run(task, "INSERT INTO lines(line, level) VALUES ('x', 1)")
    (effect,) = service.collect()
    assert (effect.kind, fields(effect)) == ("lines.insert", {"line": "x", "level": "1"})


def test_dropping_a_booked_column_is_refused_by_sqlite(tmp_path: Path) -> None:
    """A known limit: SQLite does not drop a column that a trigger names."""
    _, task = started(tmp_path)
    with pytest.raises(sqlite3.OperationalError, match="error in trigger chaoskit_"):
        run(task, "ALTER TABLE receipts DROP COLUMN amount")


def test_a_file_made_anew_starts_new_books(tmp_path: Path) -> None:
    """A task that deletes the database and makes another one has changed what differs."""
    service, task = started(tmp_path)
    run(task, *(f"INSERT INTO log(line) VALUES ({n})" for n in range(5)))
    assert len(service.collect()) == 5
    (tmp_path / "database.sqlite").unlink()
    assert service.collect() == ()
    assert service.contents() == {}
    run(task, "CREATE TABLE log (line)", "INSERT INTO log VALUES ('new')")
    *deleted, inserted = service.collect()
    assert kinds(deleted) == ["log.delete"] * 5
    assert fields(inserted) == {"line": "new"}


def test_wide_tables_generated_columns_and_virtual_tables(tmp_path: Path) -> None:
    """A thousand columns are booked, computed ones too; full-text tables are left alone."""
    wide = ", ".join(f"c{n}" for n in range(1000))
    service, task = started(
        tmp_path,
        f"CREATE TABLE wide ({wide});"
        "CREATE TABLE squares (n INTEGER, sq AS (n * n), cube AS (n * n * n) STORED);"
        "CREATE VIRTUAL TABLE search USING fts5(body);"
        "CREATE VIEW seen AS SELECT n FROM squares;",
    )
    run(
        task,
        "INSERT INTO wide(c0, c999) VALUES ('first', 'last')",
        "INSERT INTO squares(n) VALUES (3)",
        "INSERT INTO search VALUES ('text')",
    )
    first, second = service.collect()
    assert (len(first.fields), fields(first)["c999"]) == (1000, "last")
    assert fields(second) == {"n": "3", "sq": "9", "cube": "27"}
    assert {name.partition(".")[0] for name in service.operations} == {"wide", "squares"}


def test_an_infinity_is_a_value(tmp_path: Path) -> None:
    """What JSON cannot say is booked all the same."""
    service, task = started(tmp_path)
    with closing(task()) as connection:
        connection.execute("INSERT INTO log(line) VALUES (?)", (b"\x00",))
        connection.execute("INSERT INTO parts VALUES ('a', ?, 'x')", (math.inf,))
        connection.execute("INSERT INTO log(line) VALUES (CAST(x'FF' AS TEXT))")
        connection.commit()
    assert [effect.who for effect in service.collect()] == ["x'00'", "a", "\ufffd"]
    assert service.contents()["parts"] == [{"a": "a", "b": math.inf, "note": "x"}]


def test_a_cascade_is_booked(tmp_path: Path) -> None:
    """Rows that a foreign key takes along are deleted rows like any other."""
    service, task = started(
        tmp_path,
        "CREATE TABLE p (id INTEGER PRIMARY KEY);"
        "CREATE TABLE c (id INTEGER PRIMARY KEY, p REFERENCES p ON DELETE CASCADE);"
        "INSERT INTO p VALUES (1); INSERT INTO c VALUES (5, 1);",
    )
    run(task, "PRAGMA foreign_keys = ON", "DELETE FROM p")
    assert Counter(kinds(service.collect())) == {"p.delete": 1, "c.delete": 1}


def test_a_lock_that_outlives_the_attempt_is_an_error_with_its_reason(tmp_path: Path) -> None:
    """A process that still holds the file makes the collection fail in words."""
    service, task = started(tmp_path, busy_timeout_s=0.0)
    with closing(task()) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ScenarioError, match="still locked after 0 s"):
            service.collect()
    assert service.collect() == ()


def test_a_file_that_is_no_database_is_an_error_with_its_reason(tmp_path: Path) -> None:
    """A task that writes something else over the file is told so."""
    service, _ = started(tmp_path)
    (tmp_path / "database.sqlite").write_text("not a database at all" * 100)
    for look in (service.collect, service.ledger, service.contents):
        with pytest.raises(ScenarioError, match="no intact SQLite database"):
            look()


def test_wrong_sql_is_an_error_of_the_scenario(tmp_path: Path) -> None:
    """Tables that SQLite does not understand are reported with SQLite's own words."""
    with pytest.raises(ScenarioError, match="syntax error"):
        started(tmp_path, "CREATE TABEL x")


def test_behaviours_are_refused(tmp_path: Path) -> None:
    """A database without replies cannot lose one; behaviours of other services are not its own."""
    service, _ = started(tmp_path)
    service.reset(1, [parse_behaviour("lose-reply@email.send#1")])
    with pytest.raises(UsageError, match="sends no replies"):
        service.reset(1, [parse_behaviour("lose-reply@database.log.insert#1")])


def test_the_address_is_one_that_tools_take(tmp_path: Path) -> None:
    """The URL is SQLAlchemy's form, with an absolute path, in a folder that need not exist yet."""
    service = create()
    found = asyncio.run(service.start(Nobody(), ServiceSettings(tmp_path / "a" / "b")))
    path = str(tmp_path / "a" / "b" / "database.sqlite")
    assert found == Address(
        {"url": f"sqlite:///{path}", "path": path}, {"CHAOSKIT_DATABASE_URL": f"sqlite:///{path}"}
    )
    assert asyncio.run(service.quiesce(0))
    asyncio.run(service.stop())
