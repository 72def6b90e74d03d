"""The door of the PostgreSQL service: a proxy on loopback that sees each commit and shows it.

A commit passes, on the supervisor's one thread:

    received -> [observer may kill: it never reaches the server] -> sent on, and done
    applied  -> [observer may kill: no answer]                   -> the answer is passed on
    answered -> [observer may kill: never read]

All else is passed on as it comes. One unit is with the server at a time, so that it is known
whether a transaction block is open. A client that is gone keeps its place among the connections
until its server process has ended, too: what it had sent is done by then, or is rolled back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import cast

from chaoskit.model.effects import Effect
from chaoskit.model.hosting import Observer, RequestInfo
from fake_services.conduct import Conduct
from fake_services.connections import Connections
from fake_services.host import LOOPBACK, listen
from fake_services.postgres import wire
from fake_services.postgres.units import Block, Cutter, Unit
from fake_services.postgres.wire import Frames, Message

SERVICE = "postgres"

_AT_ONCE = frozenset("dcfp")
"""What belongs to no unit: the rest of a copy that has failed, and a password."""

EffectsOf = Callable[[int], Sequence[Effect]]
"""What a server process has committed since it was last asked, and books it."""


class Door:
    """Listens, and passes everything on to the server.

    Args:
        conduct: says how each commit is treated.
        effects_of: see `EffectsOf`.
    """

    def __init__(self, conduct: Conduct, effects_of: EffectsOf) -> None:
        self.conduct = conduct
        self.effects_of = effects_of
        self.observer: Observer | None = None
        self.path = ""
        self.connections = Connections()
        self.links: set[Link] = set()
        self._server: asyncio.Server | None = None
        self._port = 0

    async def start(self, observer: Observer, port: int, path: str) -> int:
        """Listen on ``port``, or on a free one if it is 0, for the server behind ``path``.

        Raises:
            UsageError: the port is taken.
        """
        self.observer, self.path = observer, path
        self.connections = Connections()
        loop = asyncio.get_running_loop()
        self._server = await listen(
            lambda free: loop.create_server(lambda: Link(self), LOOPBACK, free, backlog=512),
            SERVICE,
            port,
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self._port

    async def quiesce(self, timeout_s: float) -> bool:
        """Every connection has ended, and so has the server process behind it."""
        return await self.connections.quiesce(LOOPBACK, self._port, timeout_s)

    def cut(self) -> None:
        """Cut every connection."""
        for link in tuple(self.links):
            link.cut()

    async def stop(self) -> None:
        """Close the listener and every connection."""
        if self._server is not None:
            self._server.close()
            self.cut()
            self.connections.abort_all()
            await self._server.wait_closed()
            self._server = None


class _Behind(asyncio.Protocol):
    """The server's side of a link."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._link.reached(cast("asyncio.Transport", transport))

    def data_received(self, data: bytes) -> None:
        self._link.from_server(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._link.server_gone()


class Link(asyncio.Protocol):
    """One client, and the server process that serves it."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._client: asyncio.Transport | None = None
        self._place: asyncio.BaseTransport | None = None
        self._server: asyncio.Transport | None = None
        self._reaching: asyncio.Task[object] | None = None
        self._asked, self._said = Frames(untyped=True), Frames()
        self._cutter, self._block = Cutter(), Block()
        self._units: deque[Unit] = deque()
        self._backend = 0
        self._begin_waiting(Unit(b"", ready=True))
        self._hushed = self._copying = False

    def _begin_waiting(self, unit: Unit | None, number: int | None = None) -> None:
        """``unit`` is with the server from now on; with a ``number`` its answer is held back."""
        self._unit, self._number = unit, number
        self._held: list[bytes] = []
        self._done, self._failed = 0, False

    # The client's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody connected."""
        self._client = cast("asyncio.Transport", transport)
        self._place = transport
        self._door.connections.add(transport)
        self._door.links.add(self)

    def data_received(self, data: bytes) -> None:
        """Bytes from the client."""
        try:
            for found in self._asked.feed(data):
                if found.kind == "":
                    self._first(found)
                elif self._copying or found.kind in _AT_ONCE:
                    self._send(found.raw)
                else:
                    self._units.extend(self._cutter.feed(found))
        except ValueError:
            self.cut()
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone, and all that it had sent is here."""
        self._client = None
        self._units += [self._cutter.rest(), Unit(b"", last=True)]
        if self._copying:
            self._hang_up()  # a copy ends only when its sender says so, or is gone
        self._go_on()
        self._over()

    def _first(self, found: Message) -> None:
        code = wire.code_of(found)
        if code in {wire.SSL_REQUEST, wire.GSS_REQUEST}:
            self._tell(b"N")
            return
        self._asked.untyped = False
        if code != wire.CANCEL_REQUEST and self._door.conduct.treat("connect").refused is not None:
            words = "the database system is not accepting connections"
            self._tell(wire.error("FATAL", "57P03", words))
            self._close_client()
            return
        loop = asyncio.get_running_loop()
        self._units.appendleft(Unit(found.raw, ready=True))
        self._reaching = asyncio.ensure_future(
            loop.create_unix_connection(lambda: _Behind(self), self._door.path)
        )
        self._reaching.add_done_callback(self._tried)

    def _tell(self, data: bytes) -> bool:
        """Send to the client; whether it is there."""
        if self._client is None or self._client.is_closing():
            return False
        self._client.write(data)
        return True

    def _close_client(self) -> None:
        if self._client is not None:
            self._client.close()

    # The server's side.

    def reached(self, transport: asyncio.Transport) -> None:
        """The server has taken the connection."""
        self._server = transport
        self._unit = None
        self._go_on()

    def _tried(self, task: asyncio.Task[object]) -> None:
        if task.cancelled() or task.exception() is not None:
            self._close_client()
        self._over()

    def from_server(self, data: bytes) -> None:
        """Bytes from the server."""
        passed: list[bytes] = []
        for found in self._said.feed(data):
            (self._held if self._number is not None else passed).append(found.raw)
            self._understand(found, passed)
        if passed:
            self._tell(b"".join(passed))

    def _understand(self, found: Message, passed: list[bytes]) -> None:
        if found.kind == "K":
            self._backend = wire.number_of(found)
        elif found.kind in {"G", "W", "H"}:
            self._copying = found.kind != "H"
            passed += self._held  # the client has to answer
            self._held = []
        elif found.kind == "E":
            self._failed = True
        elif found.kind in {"C", "I", "s"}:
            self._done += 1
        if found.kind == "Z":
            self._copying = False
            self._block.ready(found.content.decode("ascii"))
        unit = self._unit
        if unit is None:
            return
        flushed = not unit.ready and (self._failed or self._done >= unit.executes)
        if found.kind == "Z" or flushed:
            self._tell(b"".join(passed))
            passed.clear()
            self._applied()

    def server_gone(self) -> None:
        """The server process has ended."""
        self._server = None
        self._tell(b"".join(self._held))
        self._held = []
        self._close_client()
        self._over()

    def _send(self, data: bytes) -> None:
        if self._server is not None and not self._hushed:
            self._server.write(data)

    def _hang_up(self) -> None:
        """Nothing more will be sent: the server process rolls back what is open, and ends."""
        if self._server is not None and not self._hushed:
            self._hushed = True
            self._server.write_eof()

    def _over(self) -> None:
        """Neither side is there any more, or will be."""
        if self._reaching is not None and not self._reaching.done():
            return
        if self._client is None and self._server is None and self._place is not None:
            self._door.connections.discard(self._place)
            self._place = None
            self._door.links.discard(self)

    def _drop(self) -> None:
        """The client is dead, or is to think that we are: it gets no answer any more."""
        self._begin_waiting(None)
        self._hang_up()
        if self._client is not None:
            self._client.abort()

    def cut(self) -> None:
        """Cut both sides."""
        for transport in (self._client, self._server):
            if transport is not None:
                transport.abort()

    # The windows.

    def _go_on(self) -> None:
        """Send on what may be sent on."""
        while self._unit is None and self._units and self._server is not None:
            if self._hushed:
                return
            unit = self._units.popleft()
            deed = self._block.deed_of(unit)
            if deed is not None:
                self._received(unit, deed)
                continue
            if unit.ready:
                self._begin_waiting(unit)
            self._send(unit.raw)
            if unit.last:
                self._hang_up()

    def _received(self, unit: Unit, deed: str) -> None:
        observer = self._door.observer
        assert observer is not None
        number = observer.received(RequestInfo(service=SERVICE, operation=deed))
        if number is None:
            self._drop()
            return
        self._treatment = self._door.conduct.treat(deed)
        if self._treatment.refused is not None:
            self._refuse(number)
            return
        self._begin_waiting(unit, number)
        self._send(unit.raw)

    def _refuse(self, number: int) -> None:
        """The service is down: what was not committed is lost."""
        observer = self._door.observer
        assert observer is not None
        self._hang_up()
        if observer.applied(number, ()):
            observer.answering(number)
            words = "terminating connection due to administrator command"
            there = self._tell(wire.error("FATAL", "57P01", words))
            observer.answered(number, 503, deduped=False, delivered=there)
        self._close_client()

    def _applied(self) -> None:
        """The server has dealt with a unit."""
        number, observer = self._number, self._door.observer
        if number is None:
            self._unit = None
            self._go_on()
            return
        assert observer is not None
        status = 500 if self._failed else 200
        if not observer.applied(number, self._door.effects_of(self._backend)):
            self._drop()
            return
        if "lose-reply" in self._treatment:
            self._drop()
            observer.answered(number, status, deduped=False, delivered=False)
            return
        delay_s = self._door.conduct.delay_s(self._treatment)
        if delay_s == 0:
            self._answer(number, status)
        else:
            loop = asyncio.get_running_loop()
            loop.call_later(delay_s, self._answer, number, status)

    def _answer(self, number: int, status: int) -> None:
        observer = self._door.observer
        assert observer is not None
        observer.answering(number)
        delivered = self._tell(b"".join(self._held))
        observer.answered(number, status, deduped=False, delivered=delivered)
        self._begin_waiting(None)
        self._go_on()
