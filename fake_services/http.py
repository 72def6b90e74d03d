"""HTTP/1.1 on one connection: h11 keeps the protocol's rules, this class moves the bytes."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from array import array
from collections.abc import Callable
from typing import cast
from urllib.parse import unquote

import h11

from fake_services.connections import Connections
from fake_services.core import HttpReply, HttpRequest

BODY_BYTES_MAX = 32 * 1024 * 1024
"""A request with a larger body is answered with 413 and cut."""

Handler = Callable[[HttpRequest, Callable[[HttpReply | None], bool], Callable[[], bool]], None]
"""Takes a request, what answers it, and what says whether the other end is still there."""


class HttpProtocol(asyncio.Protocol):
    """Reads requests one after the other and hands each whole one to ``handler``."""

    def __init__(self, handler: Handler, connections: Connections) -> None:
        self._handler = handler
        self._connections = connections
        self._http = h11.Connection(h11.SERVER)
        self._transport: asyncio.Transport | None = None
        self._head: h11.Request | None = None
        self._body: list[bytes] = []
        self._size = 0
        self._busy = False
        self._early = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Someone connected."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass
        self._connections.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side is gone, and everything that it had sent has been read."""
        if self._transport is not None:
            self._connections.discard(self._transport)
            self._transport = None

    def data_received(self, data: bytes) -> None:
        """Bytes arrived."""
        self._http.receive_data(data)
        self._advance()

    def eof_received(self) -> bool:
        """The other side will send no more; it may still read."""
        self._http.receive_data(b"")
        self._advance()
        return self._busy

    def _advance(self) -> None:
        """Handle every request that is complete, one at a time."""
        try:
            while not self._busy and self._transport is not None and self._next():
                pass
        except h11.RemoteProtocolError as wrong:
            self._refuse(wrong.error_status_hint, str(wrong))

    def _next(self) -> bool:
        event = self._http.next_event()
        if isinstance(event, h11.Request):
            self._head, self._body, self._size = event, [], 0
            if self._http.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[])
                self._write(self._http.send(go_on))
        elif isinstance(event, h11.Data):
            self._size += len(event.data)
            if self._size > BODY_BYTES_MAX:
                self._refuse(413, f"the body is larger than {BODY_BYTES_MAX} bytes")
                return False
            self._body.append(bytes(event.data))
        elif isinstance(event, h11.EndOfMessage):
            self._dispatch()
        else:
            if isinstance(event, h11.ConnectionClosed):
                self._close()
            return False
        return True

    def _dispatch(self) -> None:
        head = self._head
        assert head is not None
        path, _, query = head.target.decode("latin-1").partition("?")
        request = HttpRequest(
            head.method.decode("ascii"),
            unquote(path),
            query,
            {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers},
            b"".join(self._body),
            self._early,
        )
        self._busy = True
        self._handler(request, self._answer, self._other_end_lives)

    def _answer(self, reply: HttpReply | None) -> bool:
        """Write ``reply``; None cuts the connection. False: the other side has gone."""
        if self._transport is None:
            return False
        if reply is None:
            self._transport.abort()
            return False
        self._early = self._more_is_here(self._transport)
        headers = [*reply.headers.items(), ("content-length", str(len(reply.body)))]
        http = self._http
        head = http.send(h11.Response(status_code=reply.status, headers=headers))
        body = http.send(h11.Data(data=reply.body)) if reply.body else b""
        self._write(b"".join(filter(None, (head, body, http.send(h11.EndOfMessage())))))
        self._busy = False
        if http.our_state is h11.MUST_CLOSE:
            self._close()
        else:
            http.start_next_cycle()
            if any(http.trailing_data):  # bytes, or that the other side has left meanwhile
                asyncio.get_running_loop().call_soon(self._advance)
        return True

    def _more_is_here(self, transport: asyncio.Transport) -> bool:
        """Whether bytes of a further request are here, or wait to be read."""
        if self._http.trailing_data[0].strip(b"\r\n"):
            return True
        if sys.platform == "win32":  # where no task can be run
            return False
        from fcntl import ioctl
        from termios import FIONREAD

        unread = array("i", [0])
        ioctl(transport.get_extra_info("socket").fileno(), FIONREAD, unread)
        return unread[0] > 0

    def _other_end_lives(self) -> bool:
        """Whether some process still has the other end open, whatever we have read of it so far."""
        if self._transport is None:
            return False
        with socket.socket(
            fileno=os.dup(self._transport.get_extra_info("socket").fileno())
        ) as wire:
            wire.setblocking(False)
            try:
                return wire.recv(1, socket.MSG_PEEK) != b""
            except BlockingIOError:
                return True
            except OSError:
                return False

    def _refuse(self, status: int, why: str) -> None:
        if self._http.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            text = why.encode()
            headers = [("content-length", str(len(text))), ("connection", "close")]
            head = self._http.send(h11.Response(status_code=status, headers=headers))
            self._write(b"".join(filter(None, (head, self._http.send(h11.Data(data=text))))))
        self._close()

    def _write(self, data: bytes | None) -> None:
        if data and self._transport is not None:
            self._transport.write(data)

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()
