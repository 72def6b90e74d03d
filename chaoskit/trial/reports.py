"""The supervisor's end of the probe: what the task says of itself (see `chaoskit.probe.channel`)."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

_LINE_BYTES_MAX = 1 << 16

Heard = Callable[[dict[str, Any]], bool]
"""Takes one message; True when its sender waits for an answer and may go on."""


class Reports:
    """A Unix socket on which tasks report.

    It is read whenever something arrives, and once more before any request is looked at, so that
    a report is never booked after a request that its sender made later.
    """

    def __init__(self, path: Path, heard: Heard) -> None:
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        self._listener.bind(str(path))
        self._listener.listen(512)
        self._buffers: dict[socket.socket, bytes] = {}
        self._loop.add_reader(self._listener, self.drain)

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
        self._buffers[connection] = b""
        self._loop.add_reader(connection, self._read, connection)
        return True

    def _read(self, connection: socket.socket) -> None:
        while True:
            try:
                data = connection.recv(1 << 16)
            except BlockingIOError:
                return
            except ConnectionError:
                data = b""
            if not data:
                self._drop(connection)
                return
            *lines, rest = (self._buffers[connection] + data).split(b"\n")
            if len(rest) > _LINE_BYTES_MAX:
                self._drop(connection)
                return
            self._buffers[connection] = rest
            for line in lines:
                self._line(connection, line)
                if connection not in self._buffers:
                    return

    def _line(self, connection: socket.socket, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            return
        if isinstance(message, dict) and self._heard(message):
            self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        try:
            connection.send(b"go\n")
        except OSError:
            self._drop(connection)

    def _drop(self, connection: socket.socket) -> None:
        if self._buffers.pop(connection, None) is not None:
            self._loop.remove_reader(connection)
            connection.close()

    def clear(self) -> None:
        """Drop every connection (of an attempt that is over)."""
        for connection in tuple(self._buffers):
            self._drop(connection)

    def close(self) -> None:
        """Close every socket."""
        self.clear()
        self._loop.remove_reader(self._listener)
        self._listener.close()
