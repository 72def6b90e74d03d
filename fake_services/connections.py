"""Who is connected, and the certainty that nobody is any more.

After a kill the kernel closes the dead task's sockets, but what they had sent may still wait in
ours. A verdict that is formed before it was read would be a guess.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress

_TICK_S = 0.05


class Connections:
    """The open connections of one listening socket."""

    def __init__(self) -> None:
        self._open: set[asyncio.BaseTransport] = set()
        self._changed = asyncio.Event()
        self._peers_seen: set[object] = set()
        self._watching = False

    def add(self, transport: asyncio.BaseTransport) -> None:
        """A protocol calls this from ``connection_made``."""
        self._open.add(transport)
        if self._watching:
            self._peers_seen.add(transport.get_extra_info("peername"))
        self._changed.set()

    def discard(self, transport: asyncio.BaseTransport) -> None:
        """A protocol calls this from ``connection_lost``."""
        self._open.discard(transport)
        self._changed.set()

    async def quiesce(self, host: str, port: int, timeout_s: float) -> bool:
        """Wait until every connection that was made so far has ended.

        The accept queue is first in, first out: once a connection of our own has been accepted,
        so was every one before it. Only then does an empty set mean that nobody is left.

        Returns:
            False when a connection is still open after ``timeout_s`` seconds.
        """
        self._watching = True
        self._peers_seen.clear()
        ending = asyncio.ensure_future(self._all_ended(host, port))
        try:
            # In ticks: however long this process stood still, that was one of them.
            for _ in range(math.ceil(timeout_s / _TICK_S)):
                await asyncio.wait({ending}, timeout=_TICK_S)
                if ending.done():
                    ending.result()
                    return True
            return False
        finally:
            ending.cancel()
            await asyncio.wait({ending})
            self._watching = False

    async def _all_ended(self, host: str, port: int) -> None:
        _, writer = await asyncio.open_connection(host, port)
        try:
            sentinel = writer.get_extra_info("sockname")
            await self._until(lambda: sentinel in self._peers_seen)
        finally:
            writer.close()
            # Also where this is cancelled: an end that nobody asks about is printed by asyncio.
            with suppress(ConnectionError):
                await writer.wait_closed()
        await self._until(lambda: not self._open)

    async def _until(self, done: Callable[[], bool]) -> None:
        while not done():
            self._changed.clear()
            await self._changed.wait()

    def abort_all(self) -> None:
        """Cut every connection."""
        for transport in tuple(self._open):
            if isinstance(transport, asyncio.Transport):
                transport.abort()
