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
from dataclasses import replace

from chaoskit.model.behaviours import Behaviour
from chaoskit.model.effects import Effect
from chaoskit.model.errors import UsageError
from chaoskit.model.hosting import Address, Keyed, Observer, RequestInfo, ServiceSettings
from fake_services.conduct import Conduct, Fence, Refused, Treatment, postpones
from fake_services.connections import Connections
from fake_services.core import (
    Call,
    Circumstances,
    HttpCore,
    HttpReply,
    HttpRequest,
    Outcome,
    Worded,
    json_reply,
)
from fake_services.http import HttpProtocol
from fake_services.ledger import Ledger
from fake_services.shown import Showing, Shown

LOOPBACK = "127.0.0.1"

Answer = Callable[[HttpReply | None], bool]
"""Writes a reply on the request's connection; None cuts it instead. False: nobody is there."""


class HttpService:
    """An HTTP core, served. Implements `chaoskit.model.hosting.Service`, and all that a service
    can do besides.

    ``conduct`` says how each request is treated; further doors to the same core share it.
    """

    def __init__(self, core: HttpCore, clock: Callable[[], float] = time.time) -> None:
        self.name = core.name
        self.operations: Sequence[str] = core.operations
        self.conduct = Conduct(core.name, core.operations, clock)
        self.conduct.lands(HttpRequest, self._land)
        self.ledger_book = Ledger()
        self._core = core
        self._observer: Observer | None = None
        self._server: asyncio.Server | None = None
        self._connections = Connections()
        self._in_flight: Counter[str] = Counter()
        self._late: dict[int, tuple[asyncio.TimerHandle, Answer]] = {}
        self._port = 0
        if isinstance(core, Keyed):
            self.keep_keys = core.keep_keys

    async def start(self, observer: Observer, settings: ServiceSettings) -> Address:
        """Listen on loopback; see `Service.start`."""
        self._observer = self.conduct.observer = observer
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
        self.conduct.reset(behaviours)
        self._core.reset(seed)
        self.ledger_book.clear()
        self._in_flight.clear()
        self._forget_answers()

    def behave(self, behaviours: Sequence[Behaviour]) -> None:
        """See `chaoskit.model.hosting.Misbehaving`."""
        self.conduct.behave(behaviours)

    def _forget_answers(self) -> None:
        """An answer to the old world must not be told of in the new one: who waits is cut off."""
        late, self._late = self._late, {}
        for timer, answer in late.values():
            timer.cancel()
            answer(None)

    def handle(
        self, request: HttpRequest, answer: Answer, sender_lives: Callable[[], bool]
    ) -> None:
        """Take one request through its windows; ``answer`` is called once, now or later.

        ``sender_lives``: whether the other end of the connection is open when it is called.
        """
        assert self._observer is not None
        call = self._core.understand(request)
        fence = Fence.of(request.headers)
        info = RequestInfo(
            service=self.name,
            operation=call.operation,
            key=call.key,
            wants=call.wants,
            token=fence.token,
            early=request.early,
            later=lambda: self._land(request),
            sender_lives=sender_lives,
        )
        number = self._observer.received(info)
        if number is None:
            answer(None)
            return
        self.conduct.arrived()
        treatment = self.conduct.treat(call.operation, fence)
        outcome = self._outcome(request, call, treatment)
        self.ledger_book.book(outcome.effects)
        self.conduct.treated(number, treatment, request)
        if not self._observer.applied(number, outcome.effects):
            answer(None)
        elif "lose-reply" in treatment or postpones(treatment):
            answer(None)
            self._observer.answered(
                number, outcome.reply.status, deduped=outcome.deduped, delivered=False
            )
        else:
            self._reply(number, call, outcome, treatment, answer)

    def _outcome(self, request: HttpRequest, call: Call, treatment: Treatment) -> Outcome:
        if treatment.refused is not None:
            return Outcome(reply=self._refusal(treatment.refused))
        if postpones(treatment):
            # Nobody reads this. It is what a gateway says of a request that it has lost sight of.
            return Outcome(reply=self._refusal(Refused(504, "not carried out yet")))
        outcome = self._core.apply(request, call, self._circumstances(call, treatment))
        if "fail-after-commit" in treatment:
            return replace(outcome, reply=_after_commit(outcome.reply))
        return outcome

    def _land(self, request: HttpRequest) -> Sequence[Effect]:
        """Apply a request whose sender is gone; see `RequestInfo.later`."""
        call = self._core.understand(request)
        treatment = self.conduct.treat_landing(call.operation, Fence.of(request.headers))
        outcome = self._outcome(request, call, treatment)
        self.ledger_book.book(outcome.effects)
        return outcome.effects

    def _refusal(self, refused: Refused) -> HttpReply:
        if isinstance(self._core, Worded):
            return self._core.refused(refused.status, refused.message)
        error = {"type": "api_error", "message": refused.message}
        return json_reply(refused.status, {"error": error})

    def _reply(
        self, number: int, call: Call, outcome: Outcome, treatment: Treatment, answer: Answer
    ) -> None:
        observer = self._observer
        assert observer is not None

        def send() -> None:
            self._late.pop(number, None)
            if call.key is not None:
                self._in_flight[call.key] -= 1
            observer.answering(number)
            delivered = answer(outcome.reply)
            observer.answered(
                number, outcome.reply.status, deduped=outcome.deduped, delivered=delivered
            )

        if call.key is not None:
            self._in_flight[call.key] += 1
        delay_s = self.conduct.delay_s(treatment)
        if delay_s == 0:
            send()
        else:
            self._late[number] = asyncio.get_running_loop().call_later(delay_s, send), answer

    def _circumstances(self, call: Call, treatment: Treatment) -> Circumstances:
        return Circumstances(
            now_s=self.conduct.now_s(),
            in_flight=call.key is not None and self._in_flight[call.key] > 0,
            forget_keys="forget-keys" in treatment,
            apply_twice="apply-twice" in treatment,
            request=treatment.request,
            lag=treatment.amount("lag") or 0,
        )

    def delay_replies(self, seconds: float, total_s: float) -> None:
        """See `chaoskit.model.hosting.Patient`."""
        self.conduct.delay_replies(seconds, total_s)

    def shift_clock(self, seconds: float) -> None:
        """See `chaoskit.model.hosting.Clocked`."""
        self.conduct.shift_clock(seconds)

    @property
    def postponed(self) -> int:
        """See `chaoskit.model.hosting.Postponing`."""
        return self.conduct.postponed

    def end(self) -> None:
        """See `chaoskit.model.hosting.Postponing`."""
        self.conduct.end()

    async def quiesce(self, timeout_s: float) -> bool:
        """Every connection has ended; see `Service.quiesce`."""
        return await self._connections.quiesce(LOOPBACK, self._port, timeout_s)

    def collect(self) -> Sequence[Effect]:
        """Nothing: every effect of an HTTP service belongs to a request."""
        return ()

    def ledger(self) -> Sequence[Effect]:
        """Every effect since the reset."""
        return self.ledger_book.entries

    def show(self, ref: str) -> Shown | None:
        """See `fake_services.shown.Showing`; None, too, where the core shows nothing."""
        return self._core.show(ref) if isinstance(self._core, Showing) else None

    def save(self) -> bytes:
        """The core's state, the ledger and the conduct; see `Restorable.save`."""
        known = (vars(self._core), self.ledger_book.entries, self.conduct.save())
        return pickle.dumps(known, pickle.HIGHEST_PROTOCOL)

    def restore(self, saved: bytes) -> None:
        """See `Restorable.restore`. The bytes are our own and never leave this process."""
        state, entries, conduct = pickle.loads(saved)  # noqa: S301
        vars(self._core).clear()
        vars(self._core).update(state)
        self.ledger_book.clear()
        self.ledger_book.book(entries)
        self.conduct.restore(conduct)
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
