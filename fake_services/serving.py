"""The services alone, for a task in another language or a look by hand: served until a signal.

Every effect is one JSON line on standard output, as it happens; a page shows the books, if asked.
"""

from __future__ import annotations

import asyncio
import secrets
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
from chaoskit.model.errors import ScenarioError
from chaoskit.model.hosting import Address, RequestInfo, Service, ServiceSettings
from fake_services.page.chronicle import Chronicle
from fake_services.page.controls import Controls
from fake_services.page.desk import Desk
from fake_services.page.server import PageServer

_COLLECT_EVERY_S = 0.5

Tell = Callable[[str], None]


class Bookkeeper:
    """An observer that kills nobody, prints every effect, and keeps a chronicle for a page."""

    def __init__(self, tell: Tell, chronicle: Chronicle | None = None) -> None:
        self._tell = tell
        self._chronicle = chronicle
        self._numbers = count(1)

    def received(self, request: RequestInfo) -> int | None:
        """Every request may go on."""
        number = next(self._numbers)
        if self._chronicle is not None:
            self._chronicle.asked(number, request)
        return number

    def applied(self, number: int, effects: Sequence[Effect]) -> bool:
        """Write the effects down."""
        self._print(effects)
        if self._chronicle is not None:
            self._chronicle.happened(effects, number)
        return True

    def answering(self, number: int) -> None:
        """Nothing to do."""

    def answered(self, number: int, status: int, *, deduped: bool, delivered: bool) -> None:
        """Write it down."""
        if self._chronicle is not None:
            self._chronicle.answered(number, status, deduped=deduped, delivered=delivered)

    def landed(self, number: int, effects: Sequence[Effect]) -> None:
        """Write the effects down."""
        self._print(effects)
        if self._chronicle is not None:
            self._chronicle.landed(number, effects)

    def book(self, effects: Sequence[Effect]) -> None:
        """Write down effects that belong to no request."""
        self._print(effects)
        if self._chronicle is not None:
            self._chronicle.happened(effects)

    def _print(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            self._tell(msgspec.json.encode(effect).decode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What to serve. ``ports`` by service name; 0 or absent lets the system choose.

    ``page_port`` is that of the page, None where none is wanted.
    """

    services: Sequence[Service]
    ports: Mapping[str, int]
    options: Mapping[str, Mapping[str, str]]
    behaviours: Sequence[Behaviour] = ()
    seed: int = 0
    page_port: int | None = None


async def serve(serving: Serving, tell_address: Tell, tell_effect: Tell) -> None:
    """Serve until SIGINT or SIGTERM; addresses first, as lines that a shell can read.

    Raises:
        UsageError: a port is taken, or a behaviour names what a service does not have.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    chronicle = Chronicle() if serving.page_port is not None else None
    keeper = Bookkeeper(tell_effect, chronicle)
    async with AsyncExitStack() as stack:
        environment: dict[str, Mapping[str, str]] = {}
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaoskit-serve-")))
        for service in serving.services:
            stack.push_async_callback(service.stop)
            address = await _start(service, serving, keeper, folder)
            environment[service.name] = address.environment
            for name, value in address.environment.items():
                tell_address(f"export {name}={value}")
        desk = None
        if chronicle is not None:
            controls = Controls(serving.services, chronicle, serving.behaviours, serving.seed)
            desk = Desk(serving.services, chronicle, controls, environment)
            await _open_page(desk, serving.page_port or 0, stack, tell_address)
        while not stop.is_set():
            for service in serving.services:
                _collect(service, keeper, desk)
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


async def _open_page(desk: Desk, port: int, stack: AsyncExitStack, tell: Tell) -> None:
    token = secrets.token_urlsafe(24)
    page = PageServer(desk, token)
    stack.push_async_callback(page.stop)
    tell(f"export CHAOSKIT_PAGE_URL={await page.start(port)}")
    tell(f"export CHAOSKIT_PAGE_TOKEN={token}")


def _collect(service: Service, keeper: Bookkeeper, desk: Desk | None) -> None:
    """Book what no request told of. With a page, a database that cannot be read is said there, and
    read the next time.
    """
    trouble = ""
    try:
        keeper.book(service.collect())
    except ScenarioError as wrong:
        if desk is None:
            raise
        trouble = str(wrong)
    if desk is not None:
        desk.trouble(service.name, trouble)


DOOR = (Serving, serve)
"""What the ``chaoskit.serving`` entry point gives to ``chaoskit serve``."""
