"""The PostgreSQL store: lost acknowledgements, servers that crash, rivals, and secrets.

What it has in common with the SQLite store is held by the tests of the modules in `conftest.BOTH`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from chaoskit.runtime import (
    DamagedStore,
    Effect,
    Misuse,
    OlderStore,
    Order,
    OutcomeUnknown,
    Refused,
    Run,
    StaleOwner,
    StoreUnavailable,
    open_run,
    operating,
    store_postgres_session,
)
from chaoskit.runtime.books import Change, Put, open_books
from chaoskit.runtime.owning import new_owner
from chaoskit.runtime.store_postgres import PostgresBooks
from tests.fake_services.postgres_running import Running, needs_postgres
from tests.runtime.servers import Address, OwnServer, change, crash

pytestmark = needs_postgres

STEPS = ("a", "b", "c")
VICTIM = Path(__file__).with_name("victim.py")


@pytest.fixture
def address(databases: OwnServer) -> Address:
    """An empty database."""
    return databases.empty()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server behind a proxy that shows each commit, and can keep it from either side."""
    running = Running(tmp_path_factory.mktemp("shown"), "")
    yield running
    running.stop()


def never(effect: Effect) -> Any:
    """A call that must not be made."""
    raise AssertionError(f"{effect.step} was called again")


# Acknowledgements that are lost.


def lose(running: Running, number: int, window: str) -> None:
    """Cut the connection at the ``number``-th time that a commit passes this window."""
    running.reset()
    passed = iter(range(1, 1000))
    running.notes.on = lambda text: not (text.startswith(window) and next(passed) == number)


def ordinary(url: str, called: list[str]) -> None:
    """A run with every way of writing to the store, which notes its calls."""
    with open_run(url, inputs=None, options={"dry": False}) as run:
        run.pin("world", lambda: "as it is")
        for name in STEPS:
            run.step(name, lambda effect: called.append(effect.step), needs=("world",))
        with run.phase("together"):
            for name in "de":
                run.step(name, lambda effect: called.append(effect.step), keyed=True)
        run.step("f", lambda effect: called.append(effect.step), order=Order.RECORD_AFTER)
        run.finish("done")


@pytest.mark.parametrize("window", ["received", "applied"])
def test_a_lost_commit_is_looked_for_and_neither_repeated_nor_forgotten(
    running: Running, window: str
) -> None:
    """Wherever the connection is cut at a commit, before the server has it or after, the run goes
    on in the same process: every call is made once, and the store has one finished run.
    """
    number = 0
    while True:
        number += 1
        lose(running, number, window)
        called: list[str] = []
        ordinary(running.url, called)
        assert called == list("abcdef"), number
        rows = running.rows("SELECT finished, token, result FROM chaoskit.runs")
        assert rows == [(True, 1, '"done"')], number
        assert running.rows("SELECT count(*) FROM chaoskit.steps") == [(0,)]
        if running.notes.seen.count("answering") == len(
            [text for text in running.notes.seen if text.startswith("received")]
        ):
            break  # nothing was cut any more
    assert number > 10


def test_the_one_that_was_cut_is_over_before_anybody_writes(
    address: Address,
) -> None:
    """A statement that a lost connection has left in the server is ended, and never lands later.

    The former session is made to wait in the middle of its statement by a lock on the run's row;
    it is cut meanwhile. The session that replaces it ends it, and writes the record itself.
    """
    with open_run(address, inputs=None) as run, psycopg.connect(address) as rival:
        books = run._books
        assert isinstance(books, PostgresBooks)
        former = books._session._connection
        assert former is not None
        rival.execute("SELECT 1 FROM chaoskit.runs FOR UPDATE")
        former.pgconn.send_query(b"UPDATE runs SET cancelled = 'late'")
        former.pgconn.flush()
        # Locks, not pg_stat_activity: a server process is still listed there when it has let go.
        held, before = "SELECT 1 FROM pg_locks WHERE pid = %s", former.info.backend_pid
        while not rival.execute(f"{held} AND NOT granted", (before,)).fetchall():
            pass
        assert run._books.find_run("default") is not None
        assert rival.execute(held, (before,)).fetchall() == []
        rival.rollback()
        run.step("a", lambda _: 1)
    assert operating.view(address, "default").run.cancelled is None


# Servers that crash and come back.


def test_a_run_goes_on_over_a_crash_of_the_server(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two steps, and in the middle of one: the runtime waits for the server, and nothing is
    called twice.
    """
    monkeypatch.setattr(store_postgres_session, "_RECOVERY_S", 600.0)
    with open_run(address, inputs=None) as run:
        run.step("a", lambda _: 1)
        crash(address)

        def call(_: Effect) -> int:
            crash(address)
            return 2

        assert run.step("b", call) == 2
        run.finish()
    assert operating.view(address, "default").run.finished


def test_a_completion_that_finds_no_server_is_written_later(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call was made, its record is owed; it is there when the step is asked for again."""
    with open_run(address, inputs=None) as run:
        with monkeypatch.context() as patch:

            def call(_: Effect) -> int:
                assert isinstance(run._books, PostgresBooks)
                run._books._session.close()
                patch.setattr(run._books._session, "_address", "host=/nowhere")
                patch.setattr(store_postgres_session, "_RECOVERY_S", 0.0)
                return 7

            with pytest.raises(StoreUnavailable, match="no connection to the server"):
                run.step("a", call)
        assert run.step("a", never) == 7
        run.finish()


def test_a_server_that_lost_records_is_noticed(address: Address) -> None:
    """While a store is open: one that comes back without an acknowledged record is refused."""
    with open_run(address, inputs=None) as run:
        run.step("a", lambda _: 1)
        assert isinstance(run._books, PostgresBooks)
        run._books._session.close()
        change(address, "DELETE FROM steps")
        with pytest.raises(OlderStore, match=r"came back without records .* step 'a'"):
            run.step("b", never)


# Processes.


def attempt(task: str, folder: Path, address: Address, crossing: int) -> tuple[int, str]:
    """One life of the task: its exit code and the last crossing that it passed."""
    words = [sys.executable, str(VICTIM), task, str(folder), str(crossing)]
    environment = {**os.environ, "STORE": address}
    ended = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert "Traceback" not in ended.stderr, ended.stderr
    passed = (folder / "trace.jsonl").read_text().splitlines()
    return ended.returncode, passed[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "task", [pytest.param("looked_up", marks=pytest.mark.exhaustive), "atomic_postgres"]
)
def test_a_kill_between_any_two_records_leaves_each_effect_once(
    task: str, databases: OwnServer, tmp_path: Path
) -> None:
    """Killed by SIGKILL at its first crossing, its second, … and resumed: three effects, no more,
    no marker, and a finished run.
    """
    for crossing in range(1000):
        folder, address = tmp_path / str(crossing), databases.empty()
        folder.mkdir()
        code, last = attempt(task, folder, address, crossing)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        assert attempt(task, folder, address, 1000)[0] == 0, last
        if task == "looked_up":
            assert len((folder / "post.jsonl").read_text().splitlines()) == 3, last
        else:
            with psycopg.connect(address) as client:
                rows = client.execute("SELECT text FROM row ORDER BY text").fetchall()
                markers = client.execute("SELECT * FROM chaoskit.chaoskit_step").fetchall()
            assert rows == [(f"letter/{index}",) for index in range(3)], last
            assert markers == [], last
        assert operating.view(address, "default").run.finished, last
    assert crossing >= 12, "hardly a crossing was passed"


# What is refused.


def test_settling_never_makes_a_store(address: Address) -> None:
    """A typing error in the address leaves no store behind in another database."""
    with pytest.raises(FileNotFoundError, match="there is no store of runs at postgresql://"):
        operating.all_runs(address)
    assert not address.exists()


def test_another_format_is_refused_by_number(address: Address) -> None:
    """A store of a later version is neither read nor changed."""
    open_run(address, inputs=None).close()
    change(address, "UPDATE meta SET value = '999' WHERE name = 'format'")
    with pytest.raises(Refused, match=r"has format 999; .* reads format 1"):
        open_run(address, inputs=None)


@pytest.mark.parametrize("table", ["runs", "steps", "pins", "marker_files"])
def test_a_store_that_lacks_a_table_is_damaged(address: Address, table: str) -> None:
    """It is not completed silently: what was in the table would be done again."""
    open_run(address, inputs=None).close()
    change(address, f"DROP TABLE {table}")
    with pytest.raises(DamagedStore, match=f"it lacks the table {table}"):
        open_run(address, inputs=None)


@pytest.mark.parametrize("column", ["result", "produced", "inputs", "meant_order", "state"])
def test_a_record_that_cannot_be_read_back_is_refused(address: Address, column: str) -> None:
    """A record whose text was damaged stops the run by name; it is neither guessed nor redone."""
    with open_run(address, inputs=None) as run:
        run.step("a", lambda effect: effect.produced("x"))
    change(address, f"UPDATE steps SET {column} = '{{damaged'")  # noqa: S608
    with (
        open_run(address, inputs=None) as run,
        pytest.raises(DamagedStore, match=r"step 'a'.* cannot be restored"),
    ):
        run.step("a", never)


def test_a_server_that_takes_no_writes_is_unavailable(address: Address) -> None:
    """As a standby would be: the message says so, and the run goes on where it can be written."""
    with open_run(address, inputs=None) as run:
        run.step("a", lambda _: 1)
    with pytest.raises(StoreUnavailable, match=r"takes no writes, as a standby does"):
        open_run(f"{address}?options=-c%20default_transaction_read_only%3Don", inputs=None)
    with open_run(address, inputs=None) as run:
        assert run.step("a", never) == 1


def test_what_is_locked_is_unavailable(address: Address) -> None:
    """A lock that somebody keeps is named, and the same run goes on once it is gone."""
    with open_run(address, inputs=None) as run, psycopg.connect(address) as rival:
        rival.execute("LOCK TABLE chaoskit.steps IN ACCESS EXCLUSIVE MODE")
        assert isinstance(run._books, PostgresBooks)
        run._books._session.do(lambda cursor: cursor.execute("SET lock_timeout TO '1ms'"))
        with pytest.raises(StoreUnavailable, match="another session holds a lock"):
            run.step("a", never)
        rival.rollback()
        assert run.step("a", lambda _: 1) == 1


def test_a_text_that_postgresql_cannot_keep_is_a_misuse(address: Address) -> None:
    """It keeps no NUL: such an id of a run is refused by its fault, not passed off as another."""
    with pytest.raises(Misuse, match="cannot keep this as a text"):
        open_run(address, inputs=None, run_id="a\0b")


def test_the_commands_take_a_url(address: Address) -> None:
    """`chaoskit runs` shows and settles what is in a server, by the command that a refusal has."""
    with open_run(address, inputs=None) as run:
        with suppress(ZeroDivisionError):
            run.step("a", lambda _: 1 // 0)
        with pytest.raises(OutcomeUnknown) as caught:
            run.step("a", never)
    told = str(caught.value)
    assert f"chaoskit runs settle {address} default a" in told
    words = [sys.executable, "-m", "chaoskit.cli.main", "runs"]
    settled = subprocess.run([*words, "settle", address, "default", "a", "did-not-happen"])
    shown = subprocess.run([*words, "list", address], capture_output=True, text=True)
    assert (settled.returncode, shown.returncode) == (0, 0)
    with open_run(address, inputs=None) as run:
        assert run.step("a", lambda _: 5) == 5


# What it promises.


@pytest.mark.parametrize(("durability", "waits"), [("full", "on"), ("normal", "off")])
def test_durability_is_what_it_says(address: Address, durability: Any, waits: str) -> None:
    """Full waits for the server's disk at each commit, normal does not."""
    with closing(open_books(address, durability)) as books:
        assert isinstance(books, PostgresBooks)
        found = books._rows("SHOW synchronous_commit")
    assert found == [(waits,)]


@pytest.mark.parametrize(("order", "commits"), [("intent-first", 2), ("record-after", 1)])
def test_a_step_costs_no_more_commits_than_it_needs(
    address: Address, order: str, commits: int
) -> None:
    """Two commits with the intent first, one with the record after, none when restored."""
    for expected in (commits, 0):
        with open_run(address, inputs=None) as run:
            before = _commits(run)
            run.step("charge", lambda _: 1, order=Order(order))
            assert _commits(run) - before == expected


def _commits(run: Run) -> int:
    return run._books.timing.commits


def test_a_record_is_the_same_record_when_it_is_written_again(address: Address) -> None:
    """What landed may be written again by its owner, and changes nothing; another may not."""
    with open_run(address, inputs=None) as run, closing(open_books(address)) as books:
        run.step("a", lambda _: 1)
        step = books.see("default", "a").step
        assert step is not None
        again = Change(puts=(Put(step, 1),))
        other = Change(puts=(Put(step._replace(result="2"), 1),))
        books.commit("default", 1, again)
        assert books.see("default", "a").step == step
        with pytest.raises(Refused, match="recorded by another process meanwhile"):
            books.commit("default", 1, other)
        found = books.find_run("default")
        assert found is not None
        assert books.take(found, new_owner()) == 2
        with pytest.raises(StaleOwner):
            books.commit("default", 1, again)
