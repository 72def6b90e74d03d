"""What a transaction did, as the books of the embedded database say it: one net change a row."""

# ruff: noqa: S608 - the statements are the tests' own

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoskit.model.effects import Effect
from chaoskit.model.hosting import ServiceSettings
from fake_services.database.folding import Change, fold
from fake_services.database.service import DatabaseService
from fake_services.serving import Bookkeeper

TABLES = """
CREATE TABLE keyed (id INTEGER PRIMARY KEY, v TEXT);
CREATE TABLE named (name TEXT UNIQUE, v TEXT);
CREATE TABLE plain (v TEXT);
INSERT INTO keyed VALUES (1, 'a'), (2, 'b');
INSERT INTO named VALUES ('x', 'a');
INSERT INTO plain VALUES ('a'), ('a');
"""


@contextmanager
def database(tables: str = TABLES) -> Iterator[tuple[DatabaseService, sqlite3.Connection]]:
    """The service, and a task's connection to its file that commits when it says so."""
    with tempfile.TemporaryDirectory() as folder:
        service = DatabaseService()
        settings = ServiceSettings(Path(folder), options={"tables": tables})
        path = asyncio.run(service.start(Bookkeeper(print), settings)).placeholders["path"]
        with closing(sqlite3.connect(path, isolation_level=None)) as task:
            yield service, task


def told(effects: Sequence[Effect]) -> list[str]:
    """Each effect as one word and its fields."""
    return [
        f"{effect.kind} " + ",".join(f"{name}={value}" for name, value in effect.fields)
        for effect in effects
    ]


ALL_AGAIN = "DELETE FROM keyed; INSERT INTO keyed VALUES (2, 'b'), (1, 'a')"

ONE_TRANSACTION = {
    "the same row again": ("DELETE FROM keyed WHERE id = 1; INSERT INTO keyed VALUES (1, 'a')", []),
    "all rows again": (ALL_AGAIN, []),
    "all rows, one of them new": (
        ALL_AGAIN + ", (3, 'c')",
        ["keyed.insert id=3,v=c"],
    ),
    "all rows but one": (
        "DELETE FROM keyed; INSERT INTO keyed VALUES (1, 'a')",
        ["keyed.delete id=2,v=b"],
    ),
    "another value": (
        "DELETE FROM keyed WHERE id = 1; INSERT INTO keyed VALUES (1, 'z')",
        ["keyed.update id=1,v=z,was.v=a"],
    ),
    "another value by another unique column": (
        "DELETE FROM named; INSERT INTO named VALUES ('x', 'z')",
        ["named.update name=x,v=z,was.v=a"],
    ),
    "an insert taken back": (
        "INSERT INTO keyed VALUES (7, 'q'); DELETE FROM keyed WHERE v = 'q'",
        [],
    ),
    "there and back": ("UPDATE keyed SET v = v || '!'; UPDATE keyed SET v = rtrim(v, '!')", []),
    "twice changed": (
        "UPDATE keyed SET v = 'y' WHERE id = 1; UPDATE keyed SET v = 'z' WHERE id = 1",
        ["keyed.update id=1,v=z,was.v=a"],
    ),
    "inserted and changed": (
        "INSERT INTO keyed VALUES (3, 'q'); UPDATE keyed SET v = 'c' WHERE id = 3",
        ["keyed.insert id=3,v=c"],
    ),
    "two rows that change places": (
        (
            "UPDATE keyed SET id = 3 WHERE id = 1; UPDATE keyed SET id = 1 WHERE id = 2; "
            "UPDATE keyed SET id = 2 WHERE id = 3; UPDATE keyed SET v = 'a' WHERE id = 1; "
            "UPDATE keyed SET v = 'b' WHERE id = 2"
        ),
        [],
    ),
    "rows without a key again": ("DELETE FROM plain; INSERT INTO plain VALUES ('a'), ('a')", []),
    "one more without a key": (
        "DELETE FROM plain; INSERT INTO plain VALUES ('a'), ('a'), ('a')",
        ["plain.insert v=a"],
    ),
    "one less without a key": (
        "DELETE FROM plain; INSERT INTO plain VALUES ('a')",
        ["plain.delete v=a"],
    ),
    "another key": ("UPDATE keyed SET id = 9 WHERE id = 1", ["keyed.update id=9,v=a,was.id=1"]),
    "a savepoint that is rolled back": (
        (
            "DELETE FROM keyed WHERE id = 1; SAVEPOINT s; INSERT INTO keyed VALUES (1, 'wrong'); "
            "SAVEPOINT t; DELETE FROM keyed; RELEASE t; ROLLBACK TO s; "
            "INSERT INTO keyed VALUES (1, 'a')"
        ),
        [],
    ),
    "a row larger than all free pages": (
        (
            "DELETE FROM keyed WHERE id = 1; INSERT INTO plain VALUES (hex(zeroblob(100000))); "
            "DELETE FROM plain WHERE length(v) > 1; INSERT INTO keyed VALUES (1, 'a')"
        ),
        [],
    ),
}


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
@pytest.mark.parametrize("what", ONE_TRANSACTION)
def test_a_transaction_is_one_write(what: str, mode: str) -> None:
    """What it left as it was is no effect, whatever it did meanwhile."""
    script, expected = ONE_TRANSACTION[what]
    with database() as (service, task):
        task.execute(f"PRAGMA journal_mode = {mode}")
        task.executescript(f"BEGIN; {script}; COMMIT")
        assert told(service.collect()) == expected


TWO_TRANSACTIONS = {
    "deleted, then inserted": (
        ("DELETE FROM keyed WHERE id = 1", "INSERT INTO keyed VALUES (1, 'a')"),
        ["keyed.delete id=1,v=a", "keyed.insert id=1,v=a"],
    ),
    "taken from a queue": (
        ("INSERT INTO plain VALUES ('q')", "DELETE FROM plain WHERE v = 'q'"),
        ["plain.insert v=q", "plain.delete v=q"],
    ),
    "there and back": (
        ("UPDATE keyed SET v = 'z' WHERE id = 1", "UPDATE keyed SET v = 'a' WHERE id = 1"),
        ["keyed.update id=1,v=z,was.v=a", "keyed.update id=1,v=a,was.v=z"],
    ),
    "a double": (
        ("INSERT INTO plain VALUES ('q')", "INSERT INTO plain VALUES ('q')"),
        ["plain.insert v=q"] * 2,
    ),
    "a first one that uses up the free pages": (
        (
            "DELETE FROM keyed WHERE id = 1; CREATE TABLE big AS SELECT zeroblob(100000) AS b",
            "INSERT INTO keyed VALUES (1, 'a')",
        ),
        ["keyed.delete id=1,v=a", "keyed.insert id=1,v=a"],
    ),
}


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
@pytest.mark.parametrize("what", TWO_TRANSACTIONS)
def test_two_transactions_are_two_writes(what: str, mode: str) -> None:
    """What was committed in between was there: a kill may have left it."""
    scripts, expected = TWO_TRANSACTIONS[what]
    with database() as (service, task):
        task.execute(f"PRAGMA journal_mode = {mode}")
        for script in scripts:
            task.executescript(f"BEGIN; {script}; COMMIT")
        effects = [text for text in told(service.collect()) if not text.startswith("big")]
        assert effects == expected


@pytest.mark.parametrize("keyed", [True, False])
def test_a_table_that_takes_the_place_of_another_has_changed_what_differs(keyed: bool) -> None:
    """Filled beside it and renamed, with or without a key: the same rows are no effect."""
    swap = (
        f"CREATE TABLE made (v TEXT {'PRIMARY KEY' if keyed else ''}); "
        "INSERT INTO made VALUES ('one'), ({}); "
        "DROP TABLE IF EXISTS loads; ALTER TABLE made RENAME TO loads"
    )
    for tables in ("", f"CREATE TABLE loads (v TEXT {'PRIMARY KEY' if keyed else ''})"):
        with database(tables) as (service, task):
            task.executescript(swap.format("'two'"))
            assert told(service.collect()) == ["loads.insert v=one", "loads.insert v=two"]
            task.executescript(swap.format("'two'"))
            assert told(service.collect()) == []
            task.executescript(swap.format("'three'"))
            assert sorted(told(service.collect())) == ["loads.delete v=two", "loads.insert v=three"]


def test_a_table_of_the_task_is_looked_at_attempt_by_attempt() -> None:
    """The first attempt shows what is there in the end only, so a later one does, too."""
    with database("") as (service, task):
        task.executescript("CREATE TABLE t (v); INSERT INTO t VALUES ('x'); DELETE FROM t")
        assert told(service.collect()) == []
        task.executescript("INSERT INTO t VALUES ('x'); DELETE FROM t; INSERT INTO t VALUES ('y')")
        assert told(service.collect()) == ["t.insert v=y"]


def test_without_auto_vacuum_each_change_is_a_transaction() -> None:
    """``PRAGMA auto_vacuum = NONE`` in the tables leaves the file alone, and folds nothing."""
    with database("PRAGMA auto_vacuum = NONE;" + TABLES) as (service, task):
        task.executescript(
            "BEGIN; DELETE FROM keyed WHERE id = 1; INSERT INTO keyed VALUES (1, 'a'); COMMIT"
        )
        assert told(service.collect()) == ["keyed.delete id=1,v=a", "keyed.insert id=1,v=a"]


Rows = dict[int, str]

_VALUES = st.sampled_from(["a", "b", "c" * 9000])
_KEYED = st.one_of(
    st.builds("INSERT OR REPLACE INTO keyed VALUES ({}, '{}')".format, st.integers(1, 4), _VALUES),
    st.builds("DELETE FROM keyed WHERE id = {}".format, st.integers(1, 4)),
    st.builds("UPDATE keyed SET v = '{1}' WHERE id = {0}".format, st.integers(1, 4), _VALUES),
    st.sampled_from(["DELETE FROM keyed", "UPDATE keyed SET v = v || 'x' WHERE length(v) < 9"]),
    st.sampled_from(["SAVEPOINT s", "ROLLBACK TO s"]),
)


def _difference(before: Rows, after: Rows) -> Counter[str]:
    """What happened to ``keyed``, from the two states alone."""
    old, new = before, after
    found = [f"keyed.insert id={k},v={new[k]}" for k in new.keys() - old.keys()]
    found += [f"keyed.delete id={k},v={old[k]}" for k in old.keys() - new.keys()]
    found += [
        f"keyed.update id={k},v={new[k]},was.v={old[k]}"
        for k in old.keys() & new.keys()
        if old[k] != new[k]
    ]
    return Counter(found)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(_KEYED, max_size=6), max_size=4), st.sampled_from(["DELETE", "WAL"]))
def test_effects_depend_on_the_table_before_and_after_each_transaction(
    transactions: list[list[str]], mode: str
) -> None:
    """The effects of any transactions are the differences that each one made, and no other."""
    tables = (
        "CREATE TABLE keyed (id INTEGER PRIMARY KEY, v TEXT); INSERT INTO keyed VALUES (1, 'a')"
    )
    with database(tables) as (service, task):
        task.execute(f"PRAGMA journal_mode = {mode}")
        expected: Counter[str] = Counter()
        for statements in transactions:
            before = dict(task.execute("SELECT id, substr(v, 1, 20) FROM keyed"))
            task.execute("BEGIN")
            task.execute("SAVEPOINT s")
            for statement in statements:
                task.execute(statement)
            task.execute("COMMIT")
            after = dict(task.execute("SELECT id, substr(v, 1, 20) FROM keyed"))
            expected += _difference(before, after)
        effects = service.collect()
    assert Counter(map(_short, effects)) == expected


def _short(effect: Effect) -> str:
    fields = dict(effect.fields)
    was = f",was.v={fields['was.v'][:20]}" if "was.v" in fields else ""
    return f"{effect.kind} id={fields['id']},v={fields['v'][:20]}{was}"


_PLAIN = st.tuples(st.sampled_from(["insert", "delete", "update"]), *[st.integers(0, 3)] * 2)


@given(st.lists(st.integers(0, 3), max_size=4), st.lists(_PLAIN, max_size=8))
def test_folded_changes_lead_from_before_to_after(
    before: list[int], deeds: list[tuple[str, int, int]]
) -> None:
    """Without a key, too: applied to the table before they give the one after; none if it is the
    same.
    """
    table, changes = Counter(before), []
    for kind, one, two in deeds:
        was = None if kind == "insert" else one
        now = None if kind == "delete" else two
        if was is not None and not table[was]:
            continue
        changes.append(Change(was, now))
        table -= Counter() if was is None else Counter([was])
        table += Counter() if now is None else Counter([now])
    net = fold(changes, lambda row: row, [(lambda row: row, lambda row: row)], lambda _: ())
    again = Counter(before)
    again.subtract(c.was for c in net if c.was is not None)
    again.update(c.now for c in net if c.now is not None)
    assert +again == +table
    assert min(again.values(), default=0) >= 0
    assert bool(net) == (Counter(before) != +table)
