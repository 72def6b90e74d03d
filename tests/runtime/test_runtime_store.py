"""The store's file: born whole, refused when damaged, and small when the run is over."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest

from chaoskit.runtime import (
    DamagedStore,
    Misuse,
    Order,
    Refused,
    Run,
    markers_sqlite,
    open_run,
    settle,
    store_rows,
)
from chaoskit.runtime.store import SqliteBooks
from chaoskit.runtime.store_file import DRAFT_SUFFIX, FORMAT

Told = list[tuple[str, ...]]

STORED_FORMAT = "SELECT value FROM meta WHERE name = 'format'"
WHOLE = ["run.db", "run.db-mark"]


def _some_steps(path: Path, count: int = 200) -> None:
    with open_run(path, inputs=None, durability="normal") as run:
        for index in range(count):
            run.step(f"charge/{index}", lambda effect: effect.key * 4, keyed=True)


def _connection(run: Run) -> sqlite3.Connection:
    assert isinstance(run._books, SqliteBooks)
    return run._books._connection


def _rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """A store cannot be made in a folder that is not there, and the message says which."""
    with pytest.raises(FileNotFoundError, match=r"the folder .*nowhere does not exist"):
        open_run(tmp_path / "nowhere" / "run.db", inputs=None)


def test_settling_never_makes_a_store(store: Path) -> None:
    """An operator's typing error in the path does not leave a new empty store behind."""
    with pytest.raises(FileNotFoundError, match="no store of runs"):
        settle(store, "default", "charge/1", happened=True)
    assert not store.exists()


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda _: b"", "it is empty"),
        (lambda whole: b"\0" * len(whole), "not a database"),
        (lambda _: b"{}\n" * 3000, "not a database"),
        (lambda whole: whole[: len(whole) // 2], ""),
        (lambda whole: whole[:8192] + b"\0" * 12288 + whole[20480:], ""),
        (lambda whole: whole[:-8192] + b"\0" * 4096 + whole[-4096:], ""),
    ],
    ids=["empty", "nulls", "text", "cut", "hole", "hole far from what opening reads"],
)
def test_a_damaged_file_is_refused_and_kept(
    store: Path, told: Told, damage: Callable[[bytes], bytes], why: str
) -> None:
    """Damage anywhere is a refusal that names the file, before any step; the file stays as it is.

    An empty file is no exception: no crash of this runtime leaves one, so something else took
    the records, and to begin anew would do everything again.
    """
    _some_steps(store)
    store.write_bytes(damage(store.read_bytes()))
    before = store.read_bytes()
    with pytest.raises(DamagedStore, match=f"the store {store} is damaged: .*{why}"):
        open_run(store, inputs=None)
    assert store.read_bytes() == before
    assert told[-1][0] == "refused"


def test_somebody_elses_database_is_refused(store: Path) -> None:
    """A database that is not a store of runs is not turned into one."""
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("CREATE TABLE customers (name)")
    with pytest.raises(DamagedStore, match="not a store of runs"):
        open_run(store, inputs=None)
    assert _rows(store, "SELECT name FROM sqlite_master") == [("customers",)]


def test_a_folder_in_place_of_the_file_is_refused(store: Path) -> None:
    """A folder under the store's name is said to be one."""
    store.mkdir()
    with pytest.raises(DamagedStore, match="it is not a file"):
        open_run(store, inputs=None)


def test_another_format_is_refused_by_number(store: Path, told: Told) -> None:
    """A store of a later version is neither read nor changed; the message has both formats."""
    _some_steps(store, 1)
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute(STORED_FORMAT).fetchall() == [(FORMAT,)]
        connection.execute("UPDATE meta SET value = '999' WHERE name = 'format'")
        connection.commit()
    with pytest.raises(Refused, match=f"has format 999; .* reads format {FORMAT}"):
        open_run(store, inputs=None)
    assert told[-1][0] == "refused"


@pytest.mark.parametrize("column", ["result", "produced", "inputs", "meant_order", "state"])
def test_a_record_that_cannot_be_read_back_is_refused(store: Path, column: str) -> None:
    """A record whose text was damaged stops the run by name; it is neither guessed nor redone."""
    _some_steps(store, 1)
    with closing(sqlite3.connect(store)) as connection:
        connection.execute(f"UPDATE steps SET {column} = '{{damaged'")  # noqa: S608
        connection.commit()
    with (
        open_run(store, inputs=None) as run,
        pytest.raises(DamagedStore, match=r"step 'charge/0'.* cannot be restored"),
    ):
        run.step("charge/0", lambda _: pytest.fail("called again"), keyed=True)


def test_a_finished_run_whose_result_is_damaged_is_refused(store: Path) -> None:
    """The result of a finished run is as much a record as a step's."""
    with open_run(store, inputs=None) as run:
        run.finish({"sum": 1})
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE runs SET result = NULL")
        connection.commit()
    with pytest.raises(DamagedStore, match="the result of run 'default'"):
        open_run(store, inputs=None)


@pytest.mark.parametrize("left", [b"", b"SQLite format 3\0", b"\0" * 4096])
def test_a_crash_while_the_store_is_made_leaves_no_trace(store: Path, left: bytes) -> None:
    """Whatever a killed first opening left of its draft, the next one works and cleans it up."""
    store.with_name(store.name + DRAFT_SUFFIX).write_bytes(left)
    with open_run(store, inputs=None) as run:
        run.finish(1)
    assert sorted(path.name for path in store.parent.iterdir()) == WHOLE


def test_a_killed_creation_never_shows_a_half_made_store(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the store is whole there is nothing under its name."""
    seen: list[bool] = []

    def die(draft: Path, target: Path) -> None:
        seen.append(target.exists())
        assert _rows(draft, STORED_FORMAT) == [(FORMAT,)]
        # Two first openings at once that both had to change it would be in each other's way.
        assert _rows(draft, "PRAGMA journal_mode") == [("wal",)]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", die)
        with pytest.raises(KeyboardInterrupt):
            open_run(store, inputs=None)
    assert seen == [False]
    assert not store.exists()
    open_run(store, inputs=None).close()


def test_several_may_make_the_same_store_at_once(store: Path) -> None:
    """Whoever loses the race uses the winner's store: no run of any of them is lost."""
    barrier = Barrier(6)

    def opened(index: int) -> int:
        barrier.wait()
        with open_run(store, inputs=None, run_id=str(index)) as run:
            return run.step("a", lambda _: index)

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(opened, range(6))) == list(range(6))
    for index in range(6):
        with open_run(store, inputs=None, run_id=str(index)) as run:
            assert run.step("a", lambda _: pytest.fail("called again")) == index


def test_a_file_holds_many_runs(store: Path) -> None:
    """Runs in one store share nothing: neither steps, nor keys, nor the end."""
    keys = []
    for run_id in ("may", "june"):
        with open_run(store, inputs=run_id, run_id=run_id) as run:
            keys.append(run.step("charge", lambda effect: effect.key))
            run.finish(run_id)
    assert len(set(keys)) == 2
    with open_run(store, inputs="may", run_id="may") as run:
        assert run.result == "may"


def test_a_finished_run_does_not_linger(store: Path) -> None:
    """Of a finished run one row stays, and closing leaves the store and its mark."""
    with open_run(store, inputs=None) as run:
        for index in range(5):
            run.step(f"charge/{index}", lambda effect: effect.attempt)
        run.finish("done")
    assert _rows(store, "SELECT run_id, finished, result FROM runs") == [("default", 1, '"done"')]
    assert _rows(store, "SELECT count(*) FROM steps") == [(0,)]
    assert _rows(store, "SELECT count(*) FROM marker_files") == [(0,)]
    assert sorted(path.name for path in store.parent.iterdir()) == WHOLE


def test_a_record_is_the_minimum_durable_unit(store: Path) -> None:
    """A reader of the file sees which step, its inputs, effect ids, the order and the proof."""
    with open_run(store, inputs=None) as run:

        def pay(effect: object) -> str:
            assert hasattr(effect, "produced")
            effect.produced("ch_123")
            effect.produced("tx_9")
            return "paid"

        run.step("charge/7", pay, inputs={"amount": 10})
    columns = "name, meant_order, state, inputs, attempt, produced, result, proof"
    ((name, order, state, inputs, attempt, produced, result, proof),) = _rows(
        store,
        f"SELECT {columns} FROM steps",  # noqa: S608
    )
    assert (name, order, state, attempt) == ("charge/7", "intent-first", "done", 1)
    assert str(inputs).startswith('{"amount":"')
    assert (produced, result, proof) == ('["ch_123","tx_9"]', '"paid"', "call")


@pytest.mark.parametrize(("durability", "synchronous"), [("full", 2), ("normal", 1)])
def test_durability_is_what_it_says(store: Path, durability: str, synchronous: int) -> None:
    """Full waits for the disk at each commit, normal does not; both write ahead."""
    options = {"durability": durability}
    with open_run(store, inputs=None, **options) as run:  # type: ignore[arg-type]
        connection = _connection(run)
        assert connection.execute("PRAGMA synchronous").fetchone() == (synchronous,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_an_unknown_durability_is_refused(store: Path) -> None:
    """A typing error in an option is an error, not a weaker promise."""
    with pytest.raises(Misuse, match="'full' or 'normal'"):
        open_run(store, inputs=None, durability="ful")  # type: ignore[arg-type]
    assert not store.exists()


@pytest.mark.parametrize(("order", "commits"), [("intent-first", 2), ("record-after", 1)])
def test_a_step_costs_no_more_commits_than_it_needs(store: Path, order: str, commits: int) -> None:
    """Two commits with the intent first, one with the record after, none when restored."""

    def statements(seen: list[str]) -> list[str]:
        return [text for text in seen if not text.lstrip().startswith("SELECT")]

    for expected in (commits, 0):
        with open_run(store, inputs=None) as run:
            seen: list[str] = []
            _connection(run).set_trace_callback(seen.append)
            run.step("charge", lambda _: 1, order=Order(order))
            _connection(run).set_trace_callback(None)
        assert len(statements(seen)) == expected


def test_no_step_reads_more_than_its_own_row(store: Path) -> None:
    """What a step asks of either database goes by primary key, so its cost does not grow."""
    open_run(store, inputs=None).close()
    with closing(sqlite3.connect(store)) as connection:
        connection.execute(markers_sqlite._CREATE)
        for sql in (
            store_rows.SEE,
            markers_sqlite._FIND,
            markers_sqlite._COMPLETE,
            markers_sqlite._FORGET,
        ):
            unbound = [None] * sql.count("?")
            plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", unbound).fetchall()
            assert all("PRIMARY KEY" in str(detail) for *_, detail in plan), plan
