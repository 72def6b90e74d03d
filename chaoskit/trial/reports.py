"""The supervisor's end of the probe: what the task says of itself.

See `chaoskit.probe.channel` for the words.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec

_LINE_BYTES_MAX = 1 << 16
_CHUNK_BYTES = 1 << 16
_LOOK_EVERY_S = 0.005
"""How often reports are read while nothing else happens; far below what fills a socket."""


class Message(msgspec.Struct, frozen=True, gc=False):
    """One report: a crossing (``point``), a step with its phase, or a stated end."""

    point: str = ""
    step: str = ""
    phase: str = ""
    end: str = ""
    reason: str = ""


Heard = Callable[[Message], bool]
"""Takes one message; True when its sender waits for an answer and may go on."""

_decode = msgspec.json.Decoder(Message).decode


class Reports:
    """A Unix socket on which tasks report.

    It is read before any request is looked at, so that a report is never booked after a request
    that its sender made later. In between, a task that waits at a crossing is heard at once, and
    one that does not is heard every few milliseconds: to wake up for each report would double
    what a trial costs.
    """

    def __init__(self, path: Path, heard: Heard) -> None:
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        self._listener.bind(str(path))
        self._listener.listen(512)
        self._buffers: dict[socket.socket, bytes] = {}
        self._lines: dict[socket.socket, deque[bytes]] = {}
        self._eager = False
        self._timer: asyncio.TimerHandle | None = None

    def listen(self, *, eager: bool) -> None:
        """Begin to hear an attempt; ``eager`` when it may wait at a crossing."""
        self._eager = eager
        if eager:
            self._loop.add_reader(self._listener, self.drain)
        self._tick()

    def _tick(self) -> None:
        self.drain()
        self._timer = self._loop.call_later(_LOOK_EVERY_S, self._tick)

    def drain(self) -> None:
        """Read every report that has been sent so far, in the order of each sender."""
        while self._accept():
            pass
        for connection in tuple(self._buffers):
            self._read(connection)

    def _accept(self) -> bool:
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return False
        connection.setblocking(False)
        self._buffers[connection], self._lines[connection] = b"", deque()
        if self._eager:
            self._loop.add_reader(connection, self._read, connection)
        return True

    def _read(self, connection: socket.socket) -> None:
        while connection in self._buffers:
            self._take_in(connection)  # a report may ask for those after it: first those we have
            try:
                data = connection.recv(_CHUNK_BYTES)
            except BlockingIOError:
                return
            except ConnectionError:
                data = b""
            if not data:
                self._drop(connection)
                return
            *lines, rest = (self._buffers[connection] + data).split(b"\n")
            self._buffers[connection] = rest
            self._lines[connection].extend(lines)
            self._take_in(connection)
            if len(rest) > _LINE_BYTES_MAX:
                self._drop(connection)
            if len(data) < _CHUNK_BYTES:
                return

    def _take_in(self, connection: socket.socket) -> None:
        """Every whole line that was read, each once."""
        lines = self._lines.get(connection, ())
        while lines:
            self._line(connection, lines.popleft())

    def _line(self, connection: socket.socket, line: bytes) -> None:
        try:
            message = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return  # not our language: a task may write what it likes
        if self._heard(message):
            try:
                connection.send(b"go\n")
            except OSError:
                self._drop(connection)

    def _drop(self, connection: socket.socket) -> None:
        self._lines.pop(connection, None)
        if self._buffers.pop(connection, None) is not None:
            if self._eager:
                self._loop.remove_reader(connection)
            connection.close()

    def clear(self) -> None:
        """Read what is left of an attempt that is over, and drop its connections."""
        self.drain()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for connection in tuple(self._buffers):
            self._drop(connection)
        if self._eager:
            self._loop.remove_reader(self._listener)
            self._eager = False

    def close(self) -> None:
        """Close every socket."""
        self.clear()
        self._listener.close()
