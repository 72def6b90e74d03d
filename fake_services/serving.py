"""The services alone, for a task in another language or a look by hand: served until a signal.

Every effect is one JSON line on standard output (or in ``ledger``), as it happens.
"""

from __future__ import annotations

import asyncio
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import msgspec

from chaoskit.model.behaviours import Behaviour
from chaoskit.model.effects import Effect
from chaoskit.model.hosting import Address, RequestInfo, Service, ServiceSettings

_COLLECT_EVERY_S = 0.5

Tell = Callable[[str], None]


class Bookkeeper:
    """An observer that kills nobody and writes every effect down."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._numbers = count(1)

    def received(self, request: RequestInfo) -> int | None:
        """Every request may go on."""
        return next(self._numbers)

    def applied(self, number: int, effects: Sequence[Effect]) -> bool:
        """Write the effects down."""
        self.book(effects)
        return True

    def answering(self, number: int) -> None:
        """Nothing to do."""

    def answered(self, number: int, status: int, *, deduped: bool, delivered: bool) -> None:
        """Nothing to do."""

    def landed(self, number: int, effects: Sequence[Effect]) -> None:
        """Write the effects down."""
        self.book(effects)

    def book(self, effects: Sequence[Effect]) -> None:
        """One line for each effect."""
        for effect in effects:
            self._tell(msgspec.json.encode(effect).decode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What to serve. ``ports`` by service name; 0 or absent lets the system choose."""

    services: Sequence[Service]
    ports: Mapping[str, int]
    options: Mapping[str, Mapping[str, str]]
    behaviours: Sequence[Behaviour] = ()
    seed: int = 0


async def serve(serving: Serving, tell_address: Tell, tell_effect: Tell) -> None:
    """Serve until SIGINT or SIGTERM; addresses first, as lines that a shell can read.

    Raises:
        UsageError: a port is taken, or a behaviour names what a service does not have.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    keeper = Bookkeeper(tell_effect)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaoskit-serve-")))
        for service in serving.services:
            stack.push_async_callback(service.stop)
            address = await _start(service, serving, keeper, folder)
            for name, value in address.environment.items():
                tell_address(f"export {name}={value}")
        while not stop.is_set():
            for service in serving.services:
                keeper.book(service.collect())
            try:
                async with asyncio.timeout(_COLLECT_EVERY_S):
                    await stop.wait()
            except TimeoutError:
                continue


async def _start(service: Service, serving: Serving, keeper: Bookkeeper, folder: Path) -> Address:
    home = folder / service.name
    home.mkdir()
    settings = ServiceSettings(
        home, serving.ports.get(service.name, 0), serving.options.get(service.name, {})
    )
    address = await service.start(keeper, settings)
    service.reset(serving.seed, serving.behaviours)
    return address


DOOR = (Serving, serve)
"""What the ``chaoskit.serving`` entry point gives to ``chaoskit serve``."""
