"""The PostgreSQL service: a real server, real psycopg clients, and clients that are killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoskit.model.behaviours import parse_behaviour
from chaoskit.model.effects import Effect
from chaoskit.model.errors import UsageError
from fake_services.postgres.wire import message
from tests.fake_services.postgres_running import Running, needs_postgres

pytestmark = needs_postgres

TABLES = """
CREATE TABLE pairs (key int PRIMARY KEY, value text);
CREATE TABLE orders (
    id serial PRIMARY KEY, name text NOT NULL, paid numeric, made timestamptz DEFAULT now());
INSERT INTO orders (name) VALUES ('there from the start');
"""

ONE = ["received commit", "applied 1", "answering", "answered 200 delivered"]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The service, started once."""
    running = Running(tmp_path_factory.mktemp("postgres"), TABLES)
    yield running
    running.stop()


@pytest.fixture
def database(running: Running) -> Running:
    """The tables as they are at the start."""
    running.reset()
    return running


def fields(effects: list[Effect]) -> list[tuple[str, dict[str, str]]]:
    """Kind and fields of effects."""
    return [(effect.kind, dict(effect.fields)) for effect in effects]


# The windows.


def test_a_commit_passes_its_windows_in_order(database: Running) -> None:
    """Nothing is seen before the COMMIT; its effects are told when the server has acknowledged."""
    with database.connect() as client:
        client.execute("INSERT INTO pairs VALUES (1, 'a')")
        client.execute("SELECT * FROM pairs")
        assert database.notes.seen == []
        client.commit()
        assert database.notes.seen[:3] == ONE[:3]
    assert fields(database.over()) == [("pairs.insert", {"key": "1", "value": "a"})]
    assert database.notes.seen == ONE


def test_a_change_outside_of_a_block_is_its_own_commit(database: Running) -> None:
    """Each of them passes the windows; a look passes none."""
    with database.connect(autocommit=True) as client:
        client.execute("INSERT INTO pairs VALUES (%s, %s)", (1, "a"))
        client.execute("SELECT * FROM pairs")
        client.execute("UPDATE pairs SET value = 'b'; INSERT INTO pairs VALUES (2, 'c')")
    database.over()
    assert database.notes.seen == [
        *("received statement", "applied 1", "answering", "answered 200 delivered"),
        *("received statement", "applied 2", "answering", "answered 200 delivered"),
    ]


def test_what_is_rolled_back_is_booked_by_nobody(database: Running) -> None:
    """Neither by the client nor by an error nor by a client that goes away."""
    with database.connect() as client:
        client.execute("INSERT INTO pairs VALUES (1, 'a')")
        client.rollback()
        client.execute("INSERT INTO pairs VALUES (1, 'a')")
        with pytest.raises(psycopg.errors.UniqueViolation):
            client.execute("INSERT INTO pairs VALUES (1, 'b')")
        client.commit()  # which the server turns into a rollback
    client = database.connect()
    client.execute("INSERT INTO pairs VALUES (2, 'a')")
    client.close()
    assert database.over() == []
    assert database.rows("SELECT * FROM pairs") == []
    assert database.notes.seen == [
        *("received commit", "applied 0", "answering", "answered 200 delivered")
    ]


def test_a_change_that_fails_has_its_windows_and_no_effect(database: Running) -> None:
    """The answer says that it failed, and the client gets the server's own error."""
    with database.connect(autocommit=True) as client:
        client.execute("INSERT INTO pairs VALUES (1, 'a')")
        with pytest.raises(psycopg.errors.UniqueViolation):
            client.execute("INSERT INTO pairs VALUES (1, 'a')")
        client.execute("INSERT INTO pairs VALUES (2, 'a')")
    assert len(database.over()) == 2
    answers = [line for line in database.notes.seen if line.startswith("answered")]
    assert [line.split()[1] for line in answers] == ["200", "500", "200"]


def test_pipelines_copies_and_prepared_statements_pass(database: Running) -> None:
    """Whatever way the client talks, each commit is seen once and every row is booked."""
    with database.connect() as client:
        with client.pipeline():
            for key in range(5):
                client.execute("INSERT INTO pairs VALUES (%s, 'a')", (key,), prepare=True)
            client.commit()
        with client.cursor() as cursor, cursor.copy("COPY pairs FROM STDIN") as copy:
            copy.write("10\tb\n11\tc\n")
        client.commit()
        client.autocommit = True
        with client.cursor() as cursor, cursor.copy("COPY pairs FROM STDIN") as copy:
            copy.write("20\tb\n")
        again = pytest.raises(psycopg.errors.UniqueViolation)
        with again, client.cursor() as cursor, cursor.copy("COPY pairs FROM STDIN") as copy:
            copy.write("20\tb\n")
        with client.pipeline():
            client.execute("INSERT INTO pairs VALUES (21, 'a')")
            client.execute("INSERT INTO pairs VALUES (22, 'a')")
        assert client.execute("SELECT count(*) FROM pairs").fetchone() == (10,)
        with client.cursor() as cursor, cursor.copy("COPY pairs TO STDOUT") as copy:
            assert len(list(copy.rows())) == 10
    assert len(database.over()) == 10
    received = [line for line in database.notes.seen if line.startswith("received")]
    assert received[:2] == ["received commit"] * 2


def test_encryption_is_declined_in_the_protocol_s_way(database: Running) -> None:
    """One byte, after which the client goes on in the clear."""
    port = database.address.ports[0]
    for code in (80877103, 80877104):
        with socket.create_connection(("127.0.0.1", port)) as link:
            link.sendall((8).to_bytes(4, "big") + code.to_bytes(4, "big"))
            assert link.recv(10) == b"N"
    with pytest.raises(psycopg.OperationalError, match="SSL"):
        database.connect(sslmode="require")
    database.connect(sslmode="prefer", gssencmode="prefer").close()


CANCELLED = """
import sys, threading
import psycopg
client = psycopg.connect(sys.argv[1])
other = psycopg.connect(sys.argv[1], autocommit=True)
def cancel():
    while not other.execute("SELECT 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)'"
                            " AND state = 'active'").fetchall():
        pass
    client.cancel()
threading.Thread(target=cancel).start()
try:
    client.execute("SELECT pg_sleep(600)")
except psycopg.errors.QueryCanceled:
    print("cancelled")
"""


def test_a_statement_can_be_cancelled(database: Running) -> None:
    """A cancel request reaches the server process that it names.

    In a process of its own: the client waits for the end of that request without letting go of
    the interpreter, which the service here needs.
    """
    words = [sys.executable, "-c", CANCELLED, database.url]
    done = subprocess.run(words, capture_output=True, timeout=300, text=True, check=True)
    assert done.stdout == "cancelled\n"


@given(st.binary(min_size=1, max_size=60))
@settings(max_examples=50, deadline=None)
def test_no_bytes_bring_the_door_down(running: Running, data: bytes) -> None:
    """Whatever comes, the next proper client is served."""
    with socket.create_connection(("127.0.0.1", running.address.ports[0])) as link:
        link.sendall(data)
    with running.connect() as client:
        assert client.execute("SELECT 1").fetchone() == (1,)


# The books.

KEYS = st.integers(1, 3)
CHANGES = st.one_of(
    st.tuples(st.just("INSERT INTO pairs VALUES (%s, %s) ON CONFLICT DO NOTHING"), KEYS, KEYS),
    st.tuples(
        st.just("INSERT INTO pairs VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = 'x'"),
        KEYS,
        KEYS,
    ),
    st.tuples(st.just("UPDATE pairs SET value = %s WHERE key <> %s"), KEYS, KEYS),
    st.tuples(st.just("DELETE FROM pairs WHERE key IN (%s, %s)"), KEYS, KEYS),
    st.tuples(st.just("TRUNCATE pairs"), st.none(), st.none()),
)


def replayed(effects: list[Effect]) -> dict[str, str]:
    """The table ``pairs`` as its books say that it is."""
    found: dict[str, str] = {}
    for effect in effects:
        row = dict(effect.fields)
        if effect.kind == "pairs.insert":
            assert row["key"] not in found
        if effect.kind == "pairs.delete":
            assert found.pop(row["key"]) == row["value"]
        else:
            found[row["key"]] = row["value"]
    return found


@given(st.lists(st.tuples(st.lists(CHANGES, max_size=4), st.booleans()), max_size=4))
@settings(max_examples=15, deadline=None)
def test_the_books_agree_with_the_rows(
    running: Running, blocks: list[tuple[list[tuple[str, Any, Any]], bool]]
) -> None:
    """Whatever is written and kept or given up, the effects told in order make up the table."""
    running.reset()
    with running.connect() as client:
        for changes, kept in blocks:
            for sql, *values in changes:
                client.execute(sql, [] if values[0] is None else [str(v) for v in values])
            client.commit() if kept else client.rollback()
    rows = {str(key): value for key, value in running.rows("SELECT * FROM pairs")}
    assert replayed(running.over()) == rows


def test_what_the_database_fills_in_by_itself_is_no_part_of_an_effect(database: Running) -> None:
    """Serial keys and times are left out; the key is the effect's own reference; numbers and
    texts stay as they were written; nothing that was there from the start is booked.
    """
    with database.connect() as client:
        client.execute("INSERT INTO orders (name, paid) VALUES ('Ann', 42.00)")
        client.commit()
        client.execute("UPDATE orders SET paid = 43.50 WHERE name = 'Ann'")
        client.execute("UPDATE orders SET made = now() WHERE name = 'Ann'")
    insert, update = database.over()
    assert dict(insert.fields) == {"name": "Ann", "paid": "42.00"}
    assert dict(update.fields) == {"name": "Ann", "paid": "43.50", "was.paid": "42.00"}
    assert (insert.operation, insert.ref) == ("database.orders.insert", "2")
    assert insert.in_words() == "row inserted in orders to Ann"


def test_tables_that_the_task_makes_are_booked_from_the_first_row(database: Running) -> None:
    """Made by any statement, in another schema, with partitions, altered, dropped, made again."""
    with database.connect(autocommit=True) as client:
        client.execute("CREATE TABLE copied AS SELECT name FROM orders")
        client.execute("CREATE SCHEMA other")
        client.execute("CREATE TABLE other.notes (id int GENERATED ALWAYS AS IDENTITY, text text)")
        client.execute("INSERT INTO other.notes (text) VALUES ('a')")
        client.execute("ALTER TABLE other.notes ADD COLUMN seen bool")
        client.execute("UPDATE other.notes SET seen = true")
        client.execute("CREATE TABLE years (year int, text text) PARTITION BY LIST (year)")
        client.execute("CREATE TABLE y1 PARTITION OF years FOR VALUES IN (1)")
        client.execute("INSERT INTO years VALUES (1, 'a')")
        client.execute("TRUNCATE years")
        client.execute("CREATE TEMP TABLE mine (a int)")
        client.execute("INSERT INTO mine VALUES (1)")
        for _ in range(2):
            client.execute("DROP TABLE IF EXISTS again")
            client.execute("CREATE TABLE again (a int PRIMARY KEY)")
            client.execute("INSERT INTO again VALUES (1)")
    assert fields(database.over()) == [
        ("copied.insert", {"name": "there from the start"}),
        ("other.notes.insert", {"text": "a"}),
        ("other.notes.update", {"text": "a", "seen": "true", "was.seen": ""}),
        ("y1.insert", {"year": "1", "text": "a"}),
        ("y1.delete", {"year": "1", "text": "a"}),
        ("again.insert", {"a": "1"}),
        ("again.insert", {"a": "1"}),
    ]


def test_a_transaction_is_one_write(database: Running) -> None:
    """What it left as it was is no effect: rows deleted or truncated and loaded again, a row that
    came and went, with and without a key, and with savepoints in between.
    """
    with database.connect(autocommit=True) as client:
        client.execute("CREATE TABLE lines (text text)")
        client.execute("INSERT INTO pairs VALUES (1, 'a'), (2, 'b')")
        client.execute("INSERT INTO lines VALUES ('x'), ('x')")
        for statements in (
            "DELETE FROM pairs WHERE key = 1; INSERT INTO pairs VALUES (1, 'a')",
            "TRUNCATE pairs; INSERT INTO pairs VALUES (2, 'b'), (1, 'a')",
            "INSERT INTO pairs VALUES (7, 'q'); DELETE FROM pairs WHERE key = 7",
            "UPDATE pairs SET value = 'z'; ROLLBACK TO s; UPDATE pairs SET value = value",
            "DELETE FROM lines; INSERT INTO lines VALUES ('x'), ('x')",
            (
                "DELETE FROM pairs; SAVEPOINT t; INSERT INTO pairs VALUES (3, 'c'); ROLLBACK TO t; "
                "INSERT INTO pairs VALUES (1, 'a'), (2, 'b')"
            ),
        ):
            client.execute(f"BEGIN; SAVEPOINT s; {statements}; COMMIT")
        client.execute("TRUNCATE lines; INSERT INTO lines VALUES ('x'), ('x'), ('x')")
        client.execute("DELETE FROM pairs; INSERT INTO pairs VALUES (1, 'z')")
    assert fields(database.over())[4:] == [
        ("lines.insert", {"text": "x"}),
        ("pairs.delete", {"key": "2", "value": "b"}),
        ("pairs.update", {"key": "1", "value": "z", "was.value": "a"}),
    ]


def test_two_transactions_are_two_writes(database: Running) -> None:
    """What was committed in between was there, also where two clients take turns."""
    with database.connect() as client, database.connect() as other:
        for sql in ("INSERT INTO pairs VALUES (1, 'a')", "DELETE FROM pairs"):
            client.execute(sql)
            client.commit()
        client.execute("INSERT INTO pairs VALUES (1, 'a')")
        other.execute("INSERT INTO pairs VALUES (2, 'b')")
        client.execute("UPDATE pairs SET value = 'c' WHERE key = 1")
        other.commit()
        client.commit()
    assert fields(database.over()) == [
        ("pairs.insert", {"key": "1", "value": "a"}),
        ("pairs.delete", {"key": "1", "value": "a"}),
        ("pairs.insert", {"key": "2", "value": "b"}),
        ("pairs.insert", {"key": "1", "value": "c"}),
    ]


def test_what_no_commit_told_of_is_collected(database: Running) -> None:
    """A SELECT may call a function that writes; its effect belongs to no request."""
    with database.connect(autocommit=True) as client:
        client.execute(
            "CREATE FUNCTION hidden() RETURNS int LANGUAGE sql AS "
            "$$ INSERT INTO pairs VALUES (7, 'h') RETURNING key $$"
        )
        database.do(database.notes.seen.clear)  # not before the last answer is noted
        client.execute("SELECT hidden()")
    assert database.notes.seen == []
    assert database.do(database.service.ledger) == ()
    assert database.wait(database.service.quiesce(300))
    assert fields(list(database.do(database.service.collect))) == [
        ("pairs.insert", {"key": "7", "value": "h"})
    ]
    assert database.do(database.service.collect) == []


def test_a_reset_is_the_world_of_the_start(database: Running) -> None:
    """Rows, tables, sequences and books are as they were, whatever was done."""
    with database.connect(autocommit=True) as client:
        client.execute("INSERT INTO orders (name) VALUES ('Ann')")
        client.execute("DROP TABLE pairs")
        client.execute("CREATE TABLE extra (a int)")
    database.over()
    database.reset()
    with database.connect() as client:
        client.execute("INSERT INTO orders (name) VALUES ('Bob')")
    (effect,) = database.over()
    assert (effect.who, effect.ref) == ("Bob", "2")
    assert database.rows("SELECT count(*) FROM pairs") == [(0,)]
    assert [name for name in database.service.operations if name.startswith("extra")] == []


# Kills.

CLIENT = """
import sys
import psycopg
client = psycopg.connect(sys.argv[1])
client.execute("INSERT INTO pairs VALUES (1, 'a')")
client.execute("INSERT INTO pairs VALUES (2, 'b')")
client.commit()
print("committed", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("window", "booked"), [("received commit", 0), ("applied 2", 2), ("answering", 2)]
)
def test_a_kill_on_either_side_of_the_commit_books_all_of_it_or_nothing(
    database: Running, window: str, booked: int
) -> None:
    """Before the server has it nothing is done; after that it is, though the client never knew."""
    words = [sys.executable, "-c", CLIENT, database.url]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stdin=pipe) as client:

        def kill(text: str) -> bool:
            if text != window:
                return True
            client.kill()
            client.wait()
            return False

        database.notes.on = kill
        assert client.stdout is not None
        assert client.stdout.read() == b""
    assert client.returncode == -signal.SIGKILL
    assert len(database.over()) == booked
    assert database.rows("SELECT count(*) FROM pairs") == [(booked,)]


@pytest.mark.parametrize("chars", [1, 5, 12, None])
def test_a_client_that_goes_while_it_commits_leaves_all_or_nothing(
    database: Running, chars: int | None
) -> None:
    """Whatever part of its COMMIT had been sent, the books are those of the rows."""
    for _ in range(5):
        database.reset()
        client = database.connect()
        client.execute("INSERT INTO pairs VALUES (1, 'a')")
        client.execute("INSERT INTO pairs VALUES (2, 'b')")
        with socket.socket(fileno=os.dup(client.fileno())) as link:
            link.setblocking(True)
            link.sendall(message("Q", b"COMMIT\0")[:chars])
            link.shutdown(socket.SHUT_RDWR)
        client.close()
        effects = database.over()
        assert len(effects) == (2 if chars is None or chars == 12 else 0)
        assert dict(database.rows("SELECT key::text, value FROM pairs")) == replayed(effects)


# Behaviours.


def test_a_lost_reply_hides_a_commit(database: Running) -> None:
    """The connection is cut, the rows are there."""
    database.reset("lose-reply@postgres.commit#1")
    with pytest.raises(psycopg.OperationalError), database.connect() as client:
        client.execute("INSERT INTO pairs VALUES (1, 'a')")
    assert len(database.over()) == 1
    assert database.notes.seen == ["received commit", "applied 1", "answered 200 lost"]


def test_a_database_that_is_down_refuses_connections_and_ends_those_that_there_are(
    database: Running,
) -> None:
    """What was not committed is rolled back; when it is up again all is as before."""
    client = database.connect()
    client.execute("INSERT INTO pairs VALUES (1, 'a')")
    database.do(lambda: database.service.behave([parse_behaviour("down:3@postgres.*#*")]))
    with pytest.raises(psycopg.errors.AdminShutdown):
        client.commit()
    for _ in range(2):
        with pytest.raises(psycopg.OperationalError, match="not accepting connections"):
            database.connect()
    with database.connect() as client:
        client.execute("INSERT INTO pairs VALUES (2, 'a')")
    (effect,) = database.over()
    assert dict(effect.fields)["key"] == "2"


def test_a_late_reply_is_late(database: Running) -> None:
    """All windows, in their order."""
    database.reset("late-reply:1ms@postgres.commit#*")
    with database.connect() as client:
        client.execute("INSERT INTO pairs VALUES (1, 'a')")
    database.over()
    assert database.notes.seen == ONE


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("apply-twice@postgres.commit#1", "unknown behaviour of postgres 'apply-twice'"),
        ("lose-reply@database.orders.insert#1", "write postgres.commit, .statement or .connect"),
        ("lose-reply@postgres.comit#1", "nearest: commit"),
    ],
)
def test_behaviours_that_it_does_not_know_are_refused(
    database: Running, behaviour: str, words: str
) -> None:
    """The message names those that there are."""
    with pytest.raises(UsageError, match=words):
        database.reset(behaviour)
