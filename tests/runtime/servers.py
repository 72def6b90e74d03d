"""A PostgreSQL server for stores, started once for each process of the tests."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sqlite3
import threading
from collections.abc import Coroutine
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import psycopg

from fake_services.postgres.server import USER, Server

T = TypeVar("T")

_RECOVERING = re.compile("the database system is|server closed the connection")


class Address(str):
    """The URL of a database, where a store may be."""

    __slots__ = ()

    def exists(self) -> bool:
        """Whether there is a store."""
        with psycopg.connect(self) as client:
            return client.execute("SELECT to_regclass('chaoskit.meta')").fetchone() != (None,)


def change(store: object, sql: str, *values: object) -> None:
    """Change a store behind the runtime's back; ``?`` stands for a value."""
    if isinstance(store, Address):
        with psycopg.connect(store, options="-c search_path=chaoskit") as client:
            client.execute(sql.replace("?", "%s"), values)
        return
    with closing(sqlite3.connect(str(store))) as connection, connection:
        connection.execute(sql, values)


def crash(address: str) -> None:
    """Kill one process of the server; return once it ends all others, to recover then.

    Until it knows of the death it still takes connections, and ends them a moment later: another
    connection sees when that is.
    """
    with psycopg.connect(address) as victim, psycopg.connect(address) as witness:
        os.kill(victim.info.backend_pid, signal.SIGKILL)
        with suppress(psycopg.OperationalError):
            witness.execute("SELECT pg_sleep(600)")


def await_recovered(address: str) -> None:
    """Return once the server takes connections.

    Raises:
        psycopg.OperationalError: it is not recovering, and takes none.
    """
    while True:
        try:
            psycopg.connect(address).close()
        except psycopg.OperationalError as error:
            if not _RECOVERING.search(str(error)):
                raise
        else:
            return


class OwnServer:
    """It runs, on a thread of its own, until `stop`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "server"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = Server(self._folder, os.environ)
        self._wait(self._server.start())

    def empty(self) -> Address:
        """The URL of a database where nobody is connected, and there is no store.

        A server that a test has crashed is waited for, so that its next one finds it.
        """
        await_recovered(self.url("postgres"))
        with psycopg.connect(self.url("postgres"), autocommit=True) as keeper:
            keeper.execute(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
            keeper.execute("SET client_min_messages TO error")
            keeper.execute("DROP SCHEMA IF EXISTS chaoskit CASCADE")
            keeper.execute("DROP SCHEMA IF EXISTS public CASCADE")
            keeper.execute("CREATE SCHEMA public")
        return self.url("postgres")

    def url(self, name: str) -> Address:
        """The URL of a database."""
        return Address(f"postgresql://{USER}@{quote(str(self._folder), safe='')}/{name}")

    def stop(self) -> None:
        """End the server and its thread."""
        self._wait(self._server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait(self, what: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(300)


def column(address: str, sql: str) -> list[str]:
    """What somebody else can see."""
    with psycopg.connect(address) as client:
        return [row[0] for row in client.execute(sql)]
