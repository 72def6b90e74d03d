"""The page on its port: each request answered, and those that wait for news when there are some."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from fake_services.connections import Connections
from fake_services.core import HttpReply, HttpRequest
from fake_services.host import LOOPBACK, Answer, listen
from fake_services.http import HttpProtocol
from fake_services.page.desk import Desk
from fake_services.page.guard import Guard
from fake_services.page.routes import STATE, Routes, read_count, read_query

WAIT_MOST_S = 25
"""So long a request for news waits at most."""

WAITING_MOST = 64
"""So many wait at once; the next one is answered with what there is."""


@dataclass(slots=True)
class _Waiting:
    request: HttpRequest
    answer: Answer
    timer: asyncio.TimerHandle


class PageServer:
    """Serves one page until it is stopped; ``token`` is what whoever acts must bring."""

    def __init__(self, desk: Desk, token: str) -> None:
        self._desk = desk
        self._token = token
        self._routes: Routes | None = None
        self._server: asyncio.Server | None = None
        self._connections = Connections()
        self._waiting: dict[int, _Waiting] = {}
        self._numbered = 0
        self._telling: asyncio.Handle | None = None

    async def start(self, port: int) -> str:
        """Listen on loopback at ``port``, 0 being any free one.

        Returns:
            The address of the page.

        Raises:
            UsageError: the port is taken.
        """
        loop = asyncio.get_running_loop()
        self._server = await listen(
            lambda free: loop.create_server(
                lambda: HttpProtocol(self.handle, self._connections), LOOPBACK, free
            ),
            "page",
            port,
        )
        found = self._server.sockets[0].getsockname()[1]
        self._routes = Routes(self._desk, Guard(found, self._token))
        self._desk.chronicle.on_change = self._on_change
        return f"http://{LOOPBACK}:{found}"

    def handle(
        self,
        request: HttpRequest,
        answer: Callable[[HttpReply | None], bool],
        _sender_lives: Callable[[], bool],
    ) -> None:
        """Answer now, or when there is news."""
        assert self._routes is not None
        reply = self._routes.answer(request)
        patience_s = self._patience_s(request) if reply.status == 200 else 0
        if patience_s == 0 or len(self._waiting) >= WAITING_MOST:
            answer(reply)
            return
        self._numbered += 1
        number = self._numbered
        timer = asyncio.get_running_loop().call_later(patience_s, self._tell, number)
        self._waiting[number] = _Waiting(request, answer, timer)

    def _patience_s(self, request: HttpRequest) -> int:
        """How long a request is willing to wait: only one for the state, if that is not newer."""
        if request.method != "GET" or request.path != STATE:
            return 0
        given = read_query(request.query)
        after, wait_s = read_count(given, "after", -1), read_count(given, "wait_s", 0)
        return min(wait_s, WAIT_MOST_S) if after == self._desk.chronicle.version else 0

    def _on_change(self) -> None:
        # It is called in the middle of a request to a service, whose windows must not wait for us.
        if self._waiting and self._telling is None:
            self._telling = asyncio.get_running_loop().call_soon(self._tell_all)

    def _tell_all(self) -> None:
        self._telling = None
        for number in tuple(self._waiting):
            self._tell(number)

    def _tell(self, number: int) -> None:
        assert self._routes is not None
        waiting = self._waiting.pop(number, None)
        if waiting is not None:
            waiting.timer.cancel()
            waiting.answer(self._routes.answer(waiting.request))

    async def stop(self) -> None:
        """Close the listener and every connection."""
        if self._server is None:
            return
        self._desk.chronicle.on_change = lambda: None
        for waiting in self._waiting.values():
            waiting.timer.cancel()
        self._waiting.clear()
        if self._telling is not None:
            self._telling.cancel()
        self._server.close()
        self._connections.abort_all()
        await self._server.wait_closed()
        self._server = None
