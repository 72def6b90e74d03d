"""The host of an HTTP service: loopback socket in, windows shown to the observer, ledger kept.

One request passes, on the supervisor's one thread:

    received -> [observer may kill: nothing changes] -> core.apply, booked in the ledger
    applied  -> [observer may kill: no answer]       -> answering, written to the socket
    answered -> [observer may kill: never read]
"""

from __future__ import annotations

import asyncio
import pickle
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from chaoskit.model.behaviours import Behaviour, BehaviourKind
from chaoskit.model.effects import Effect
from chaoskit.model.errors import UsageError, unknown_name
from chaoskit.model.hosting import Address, Observer, RequestInfo, ServiceSettings
from fake_services.connections import Connections
from fake_services.core import Call, Circumstances, HttpCore, HttpReply, HttpRequest, json_reply
from fake_services.http import HttpProtocol
from fake_services.ledger import Ledger

LOOPBACK = "127.0.0.1"

Answer = Callable[[HttpReply | None], bool]
"""Writes a reply on the request's connection; None cuts it instead. False: nobody is there."""


class HttpService:
    """An HTTP core, served. Implements `chaoskit.model.hosting.Service`."""

    def __init__(self, core: HttpCore, clock: Callable[[], float] = time.time) -> None:
        self.name = core.name
        self.operations: Sequence[str] = core.operations
        self.clock = clock
        self.ledger_book = Ledger()
        self._core = core
        self._observer: Observer | None = None
        self._server: asyncio.Server | None = None
        self._connections = Connections()
        self._behaviours: tuple[Behaviour, ...] = ()
        self._counts: Counter[str] = Counter()
        self._in_flight: Counter[str] = Counter()
        self._late: set[asyncio.TimerHandle] = set()
        self._patience_s = self._patience_left_s = 0.0
        self._port = 0

    async def start(self, observer: Observer, settings: ServiceSettings) -> Address:
        """Listen on loopback; see `Service.start`."""
        self._observer = observer
        self._connections = Connections()
        loop = asyncio.get_running_loop()
        self._server = await listen(
            lambda port: loop.create_server(
                lambda: HttpProtocol(self.handle, self._connections), LOOPBACK, port, backlog=512
            ),
            self.name,
            settings.port,
        )
        self._port = self._server.sockets[0].getsockname()[1]
        url = f"http://{LOOPBACK}:{self._port}"
        environment = {f"CHAOSKIT_{self.name.upper()}_URL": url}
        return Address({"url": url}, environment, (self._port,))

    def reset(self, seed: int, behaviours: Sequence[Behaviour]) -> None:
        """An empty world; see `Service.reset`.

        Raises:
            UsageError: a behaviour names an operation that this service does not have.
        """
        mine = tuple(b for b in behaviours if b.service == self.name)
        for behaviour in mine:
            if behaviour.operation not in self.operations:
                raise unknown_name("operation", behaviour.operation, self.operations)
        self._core.reset(seed)
        self.ledger_book.clear()
        self._behaviours = mine
        self._counts.clear()
        self._in_flight.clear()
        self._forget_answers()

    def _forget_answers(self) -> None:
        """An answer to the old world must not be told of in the new one."""
        for timer in self._late:
            timer.cancel()
        self._late.clear()

    def behaviours_for(self, operation: str) -> list[Behaviour]:
        """Count one more request for ``operation`` and say how the service misbehaves at it."""
        self._counts[operation] += 1
        ordinal = self._counts[operation]
        return [b for b in self._behaviours if b.applies(self.name, operation, ordinal)]

    def handle(self, request: HttpRequest, answer: Answer) -> None:
        """Take one request through its windows; ``answer`` is called once, now or later."""
        assert self._observer is not None
        call = self._core.understand(request)
        info = RequestInfo(
            service=self.name,
            operation=call.operation,
            key=call.key,
            wants=call.wants,
            later=lambda: self._land(request),
        )
        number = self._observer.received(info)
        if number is None:
            answer(None)
            return
        behaviours = {b.kind: b for b in self.behaviours_for(call.operation)}
        outcome = self._core.apply(request, call, self._circumstances(call, behaviours))
        self.ledger_book.book(outcome.effects)
        if not self._observer.applied(number, outcome.effects):
            answer(None)
            return
        reply = _after_commit(outcome.reply) if "fail-after-commit" in behaviours else outcome.reply
        self._reply(number, call, reply, outcome.deduped, behaviours, answer)

    def _land(self, request: HttpRequest) -> Sequence[Effect]:
        """Apply a request whose sender is dead; see `RequestInfo.later`."""
        call = self._core.understand(request)
        outcome = self._core.apply(request, call, self._circumstances(call, {}))
        self.ledger_book.book(outcome.effects)
        return outcome.effects

    def _reply(  # noqa: PLR0913 - one request's whole answer, passed once
        self,
        number: int,
        call: Call,
        reply: HttpReply,
        deduped: bool,  # noqa: FBT001 - as above
        behaviours: dict[BehaviourKind, Behaviour],
        answer: Answer,
    ) -> None:
        observer = self._observer
        assert observer is not None
        if "lose-reply" in behaviours:
            answer(None)
            observer.answered(number, reply.status, deduped=deduped, delivered=False)
            return

        def send() -> None:
            if call.key is not None:
                self._in_flight[call.key] -= 1
            observer.answering(number)
            delivered = answer(reply)
            observer.answered(number, reply.status, deduped=deduped, delivered=delivered)

        if call.key is not None:
            self._in_flight[call.key] += 1
        late = behaviours.get("late-reply")
        delay_s = (late.delay_ms / 1000 if late is not None else 0.0) + self.patience()
        if delay_s == 0:
            send()
        else:
            self._late.add(asyncio.get_running_loop().call_later(delay_s, send))

    def _circumstances(
        self, call: Call, behaviours: dict[BehaviourKind, Behaviour]
    ) -> Circumstances:
        return Circumstances(
            now_s=self.clock(),
            in_flight=call.key is not None and self._in_flight[call.key] > 0,
            forget_keys="forget-keys" in behaviours,
            apply_twice="apply-twice" in behaviours,
        )

    def delay_replies(self, seconds: float, total_s: float) -> None:
        """See `chaoskit.model.hosting.Patient`."""
        self._patience_s, self._patience_left_s = seconds, total_s

    def patience(self) -> float:
        """How many seconds the next answer is held back."""
        if self._patience_left_s < self._patience_s:
            return 0.0
        self._patience_left_s -= self._patience_s
        return self._patience_s

    async def quiesce(self, timeout_s: float) -> bool:
        """Every connection has ended; see `Service.quiesce`."""
        return await self._connections.quiesce(LOOPBACK, self._port, timeout_s)

    def collect(self) -> Sequence[Effect]:
        """Nothing: every effect of an HTTP service belongs to a request."""
        return ()

    def ledger(self) -> Sequence[Effect]:
        """Every effect since the reset."""
        return self.ledger_book.entries

    def save(self) -> bytes:
        """The core's state, the ledger and the counts; see `Restorable.save`."""
        known = (vars(self._core), self.ledger_book.entries, self._counts)
        return pickle.dumps(known, pickle.HIGHEST_PROTOCOL)

    def restore(self, saved: bytes) -> None:
        """See `Restorable.restore`. The bytes are our own and never leave this process."""
        state, entries, self._counts = pickle.loads(saved)  # noqa: S301
        vars(self._core).clear()
        vars(self._core).update(state)
        self.ledger_book.clear()
        self.ledger_book.book(entries)
        self._in_flight.clear()
        self._forget_answers()

    async def stop(self) -> None:
        """Close the listener and every connection."""
        if self._server is not None:
            self._server.close()
            self._connections.abort_all()
            await self._server.wait_closed()
            self._server = None


async def listen(
    create: Callable[[int], Awaitable[asyncio.Server]], service: str, port: int
) -> asyncio.Server:
    """Start a server on ``port``.

    Raises:
        UsageError: the port is taken or may not be used; the message names the fix.
    """
    if not 0 <= port < 65536:
        raise UsageError(f"{service}: {port} is no port; write a number up to 65535")
    try:
        return await create(port)
    except OSError as refused:
        raise UsageError(
            f"{service}: port {port} on {LOOPBACK} cannot be used ({refused.strerror}); "
            "choose another one, or 0 for any free one"
        ) from refused


def _after_commit(reply: HttpReply) -> HttpReply:
    """The error that hides a success."""
    error = {"error": {"type": "api_error", "message": "the service failed after it had committed"}}
    return json_reply(500, error, {k: v for k, v in reply.headers.items() if k == "request-id"})
