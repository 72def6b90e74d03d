"""A started PostgreSQL service on a thread of its own, for clients that wait."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest

from chaoskit.model.behaviours import parse_behaviour
from chaoskit.model.effects import Effect
from chaoskit.model.errors import UsageError
from chaoskit.model.hosting import RequestInfo, ServiceSettings
from fake_services.postgres.server import find_binaries
from fake_services.postgres.service import PostgresService

T = TypeVar("T")


def _missing() -> str:
    try:
        find_binaries(os.environ)
    except UsageError as missing:
        return str(missing)
    return ""


needs_postgres = pytest.mark.skipif(bool(_missing()), reason=_missing())


class Notes:
    """An observer that writes down what it is told; ``on`` is called at each window."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.on: Callable[[str], bool] = lambda _: True
        self._last = 0

    def _note(self, text: str) -> bool:
        self.seen.append(text)
        return self.on(text)

    def received(self, request: RequestInfo) -> int | None:
        """Window one."""
        self._last += 1
        assert request.service == "postgres"
        return self._last if self._note(f"received {request.operation}") else None

    def applied(self, number: int, effects: Sequence[Effect]) -> bool:
        """Window two."""
        return self._note(f"applied {len(effects)}")

    def answering(self, number: int) -> None:
        """Just before window three."""
        self._note("answering")

    def answered(self, number: int, status: int, *, deduped: bool, delivered: bool) -> None:
        """Window three."""
        self._note(f"answered {status} {'delivered' if delivered else 'lost'}")

    def landed(self, number: int, effects: Sequence[Effect]) -> None:
        """This service postpones nothing."""
        raise AssertionError(number)


class Running:
    """The service; what is asked of it is done on its own thread."""

    def __init__(self, folder: Path, tables: str) -> None:
        self.service = PostgresService()
        self.notes = Notes()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        settings = ServiceSettings(folder, 0, {"tables": tables})
        self.address = self.wait(self.service.start(self.notes, settings))
        self.url = self.address.placeholders["url"]

    def wait(self, what: Coroutine[Any, Any, T]) -> T:
        """The result of something that takes its time."""
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(300)

    def do(self, what: Callable[[], T]) -> T:
        """The result of something that does not."""
        done = Future[T]()

        def on_its_thread() -> None:
            try:
                done.set_result(what())
            except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                done.set_exception(error)

        self._loop.call_soon_threadsafe(on_its_thread)
        return done.result(300)

    def reset(self, *behaviours: str) -> None:
        """A new world that misbehaves so, with nothing seen of it yet."""
        self.do(lambda: self.service.reset(1, [parse_behaviour(text) for text in behaviours]))
        self.notes.seen.clear()
        self.notes.on = lambda _: True

    def over(self) -> list[Effect]:
        """Every client has gone: all effects."""
        assert self.wait(self.service.quiesce(300))
        self.do(self.service.collect)
        return list(self.do(self.service.ledger))

    def connect(self, **how: Any) -> psycopg.Connection[Any]:
        """The client that people use."""
        return psycopg.connect(self.url, **how)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows, asked for past the proxy."""
        server = self.service.server
        assert server is not None
        with psycopg.connect(host=str(Path(server.socket).parent), user="task", dbname="task") as c:
            return c.execute(sql).fetchall()

    def stop(self) -> None:
        """End the service and its thread."""
        self.wait(self.service.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
