"""What a task prints, read as it comes and kept within bounds: the head, the tail, the count."""

from __future__ import annotations

import asyncio
import os
from collections import deque

HEAD_BYTES = 16 * 1024
TAIL_BYTES = 16 * 1024
_CHUNK_BYTES = 1 << 18


class Output:
    """One attempt's standard output and error, in one stream."""

    def __init__(self) -> None:
        self.total = 0
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._read, self.writer = os.pipe()
        os.set_blocking(self._read, False)
        asyncio.get_running_loop().add_reader(self._read, self._more)

    def started(self) -> None:
        """The task has its own copy of the writing end; drop ours."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def _more(self) -> bool:
        try:
            data = os.read(self._read, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not data:
            asyncio.get_running_loop().remove_reader(self._read)
            return False
        self._keep(data)
        return True

    def _keep(self, data: bytes) -> None:
        self.total += len(data)
        room = HEAD_BYTES - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            data = data[-TAIL_BYTES:]
            self._tail.append(data)
            self._tail_size += len(data)
            while self._tail_size - len(self._tail[0]) >= TAIL_BYTES:
                self._tail_size -= len(self._tail.popleft())

    def note(self, text: str) -> None:
        """Add a line of our own (why a command could not be started)."""
        self._keep(text.encode())

    def finish(self) -> str:
        """Read what is left, close the pipe, and give the text that was kept."""
        self.started()
        while self._more():
            pass
        asyncio.get_running_loop().remove_reader(self._read)
        os.close(self._read)
        tail = b"".join(self._tail)[-TAIL_BYTES:]
        left_out = self.total - len(self._head) - len(tail)
        middle = f"\n[… {left_out} bytes left out …]\n".encode() if left_out else b""
        return (bytes(self._head) + middle + tail).decode("utf-8", errors="backslashreplace")
