"""Rivals at a PostgreSQL store: one waits for the other, and finds what that one left."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest

from chaoskit.runtime import Effect, StaleOwner, markers_postgres, open_run, operating
from chaoskit.runtime import store_postgres_rows as rows
from chaoskit.runtime.store_postgres_session import _CREATORS_KEY
from tests.fake_services.postgres_running import needs_postgres
from tests.runtime.servers import Address, OwnServer, column

pytestmark = needs_postgres


@pytest.fixture
def address(databases: OwnServer) -> Address:
    """An empty database."""
    return databases.empty()


def never(effect: Effect) -> Any:
    """A call that must not be made."""
    raise AssertionError(f"{effect.step} was called again")


UNTIL_ONE_WAITS = """
import sys, psycopg
asked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
with psycopg.connect(sys.argv[1], autocommit=True) as client:
    while client.execute(asked).fetchone() == (0,):
        pass
print("waits", flush=True)
"""


class Maker:
    """Somebody who makes a store, or the markers' table, and commits once another one waits."""

    def __init__(self, address: str) -> None:
        self._client = psycopg.connect(address)
        self._client.execute(f"SELECT pg_advisory_xact_lock({_CREATORS_KEY})")
        self._watcher = subprocess.Popen(
            [sys.executable, "-c", UNTIL_ONE_WAITS, address], stdout=subprocess.PIPE
        )
        self._thread = threading.Thread(target=self._commit)

    def __enter__(self) -> psycopg.Connection[Any]:
        return self._client

    def __exit__(self, *_: object) -> None:
        self._thread.join()
        self._watcher.communicate()
        self._client.close()

    def commits(self) -> None:
        """From now on, as soon as somebody waits."""
        self._thread.start()

    def _commit(self) -> None:
        assert self._watcher.stdout is not None
        assert self._watcher.stdout.readline() == b"waits\n"
        self._client.commit()


def test_who_waited_for_the_maker_of_a_store_opens_that_store(address: Address) -> None:
    """What it had seen missing before it waited, it looks for again."""
    maker = Maker(address)
    with maker as client:
        client.execute(rows.CREATE % {"uid": "made by the other"})
        maker.commits()
        with open_run(address, inputs=None) as run:
            assert run.step("a", lambda _: 1) == 1
    assert column(address, "SELECT value FROM chaoskit.meta WHERE name = 'uid'") == [
        "made by the other"
    ]


def test_who_waited_for_the_maker_of_the_markers_table_uses_it(
    address: Address, tmp_path: Path
) -> None:
    """An atomic step in a database whose markers' table another one is making finds it made."""
    maker = Maker(address)
    with maker as client, psycopg.connect(address) as own:
        client.execute(markers_postgres._CREATE)
        maker.commits()
        with open_run(tmp_path / "runs.db", inputs=None) as run:
            assert run.atomic_step("a", own, lambda _: 1) == 1


def test_two_that_race_for_a_new_store_make_one(address: Address) -> None:
    """Six processes open the same empty database at once: each gets its run, in one store."""
    code = (
        "import sys; from chaoskit.runtime import open_run\n"
        "sys.stdin.readline()\n"
        "with open_run(sys.argv[1], inputs=None, run_id=sys.argv[2]) as run:\n"
        "    run.step('a', lambda effect: 1)\n"
    )
    words = [sys.executable, "-c", code, address]
    racers = [subprocess.Popen([*words, str(n)], stdin=subprocess.PIPE) for n in range(6)]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.close()
    assert [racer.wait() for racer in racers] == [0] * 6
    assert [run.run_id for run in operating.all_runs(address)] == list("012345")


def test_two_that_race_for_a_run_are_one_owner_and_one_refused(address: Address) -> None:
    """Of six processes that resume one run at once one gets it; the others are told who has it."""
    code = (
        "import sys; from chaoskit.runtime import Owned, open_run\n"
        "sys.stdin.readline()\n"
        "try:\n"
        "    run = open_run(sys.argv[1], inputs=None)\n"
        "except Owned:\n"
        "    print('refused', flush=True)\n"
        "else:\n"
        "    print('owner', flush=True)\n"
        "sys.stdin.read()\n"
    )
    open_run(address, inputs=None).close()
    words = [sys.executable, "-c", code, address]
    racers = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    said = [racer.stdout.readline().strip() for racer in racers if racer.stdout]
    for racer in racers:
        racer.communicate()
    assert sorted(said) == ["owner", *["refused"] * 5]


def test_a_replaced_owner_cannot_write_however_the_two_overlap(address: Address) -> None:
    """A write that began before a take-over and waits for it changes nothing after it.

    The take-over is held open in a transaction of its own while the writer is under way.
    """
    with open_run(address, inputs=None) as run, psycopg.connect(address) as rival:
        rival.execute("UPDATE chaoskit.runs SET token = token + 1")
        watcher = subprocess.Popen(
            [sys.executable, "-c", UNTIL_ONE_WAITS, address], stdout=subprocess.PIPE
        )

        def take_over() -> None:
            assert watcher.stdout is not None
            assert watcher.stdout.readline() == b"waits\n"
            rival.commit()

        other = threading.Thread(target=take_over)
        other.start()
        with pytest.raises(StaleOwner, match="the token 1, the run has 2"):
            run.step("a", never)
        other.join()
        watcher.communicate()
    assert operating.view(address, "default").steps == ()
