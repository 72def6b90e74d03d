"""The SMTP door: plain SMTP on loopback, its three windows shown to the observer.

The windows are those of one mail, between its DATA and the answer to it; the other commands
change nothing. aiosmtpd speaks the protocol; what it does slowly is overridden here.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from typing import Self

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

from chaoskit.model.effects import Effect
from chaoskit.model.hosting import Observer, RequestInfo
from fake_services.conduct import Conduct, Refused, Treatment, postpones
from fake_services.connections import Connections
from fake_services.core import Circumstances
from fake_services.email.core import EmailCore
from fake_services.email.mail import Mail, effect_of
from fake_services.email.mailbox import HOSTNAME, Sent
from fake_services.email.mime import read_mail
from fake_services.host import LOOPBACK, listen
from fake_services.ledger import Ledger

LINE_BYTES_MAX = 64 * 1024
"""Longer lines are refused. RFC 5321 says 1000, but many servers take more."""

_PLAIN_PATH = re.compile(r"\s*<([A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9.-]+)>(.*)")

# aiosmtpd warns about every odd client; without a handler of its own that would go to stderr.
logging.getLogger("mail.log").addHandler(logging.NullHandler())


class SmtpDoor:
    """Listens, and takes each mail through its windows into the mailbox of ``core``.

    Args:
        core: the mailbox.
        book: the service's ledger.
        conduct: says how each mail is treated.
    """

    def __init__(self, core: EmailCore, book: Ledger, conduct: Conduct) -> None:
        self._core = core
        self._book = book
        self._conduct = conduct
        self._connections = Connections()
        self._server: asyncio.Server | None = None
        self._port = 0

    async def start(self, observer: Observer, port: int) -> int:
        """Listen on ``port``, or on a free one if it is 0.

        Returns:
            The port.

        Raises:
            UsageError: the port is taken.
        """
        loop = asyncio.get_running_loop()
        self._connections = Connections()
        post = _Post(self._core, self._book, self._conduct, observer)
        self._server = await listen(
            lambda free: loop.create_server(
                lambda: _Protocol(post, self._connections, loop), LOOPBACK, free, backlog=512
            ),
            "email (SMTP)",
            port,
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self._port

    async def quiesce(self, timeout_s: float) -> bool:
        """Every connection has ended; see `Service.quiesce`."""
        return await self._connections.quiesce(LOOPBACK, self._port, timeout_s)

    async def stop(self) -> None:
        """Close the listener and every connection."""
        if self._server is not None:
            self._server.close()
            self._connections.abort_all()
            await asyncio.sleep(0)  # an aborted connection ends in the next round of the loop
            await self._server.wait_closed()
            self._server = None


class _Answer(str):
    """A reply that the observer is told about; ``number`` is that of its request."""

    __slots__ = ("number",)
    number: int

    def __new__(cls, text: str, number: int) -> Self:
        answer = super().__new__(cls, text)
        answer.number = number
        return answer

    @property
    def status(self) -> int:
        """The reply code."""
        return int(self[:3])


class _Post:
    """What aiosmtpd calls: its hooks are found by the names of the methods."""

    def __init__(self, core: EmailCore, book: Ledger, conduct: Conduct, observer: Observer) -> None:
        self._core = core
        self._book = book
        self._conduct = conduct
        self.observer = observer
        conduct.lands(Mail, self._land)

    async def handle_EHLO(  # noqa: N802 - aiosmtpd's name
        self,
        server: SMTP,
        session: Session,
        envelope: Envelope,
        hostname: str,
        responses: list[str],
    ) -> list[str]:
        """All lines in one piece, so that they cost one system call."""
        session.host_name = hostname
        return ["\r\n".join(responses)]

    async def handle_DATA(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        """A whole mail is here: received, applied, and the answer that `_Protocol.push` sends."""
        content = envelope.content if isinstance(envelope.content, bytes) else b""
        mail = read_mail(content, envelope.mail_from or "", envelope.rcpt_tos)
        wanted = effect_of(mail)
        number = self.observer.received(
            RequestInfo(
                service="email", operation="send", wants=wanted, later=lambda: self._land(mail)
            )
        )
        if number is None:
            raise _cut(server)
        self._conduct.arrived()
        treatment = self._conduct.treat("send")
        text, effects = self._done(mail, wanted, treatment)
        self._conduct.treated(number, treatment, mail)
        if not self.observer.applied(number, effects):
            raise _cut(server)
        answer = _Answer(text, number)
        await self._misbehave(server, answer, treatment)
        return answer

    def _done(
        self, mail: Mail, wanted: Effect, treatment: Treatment
    ) -> tuple[str, Sequence[Effect]]:
        """The answer, and what was done."""
        if treatment.refused is not None:
            return _refusal(treatment.refused), ()
        if postpones(treatment):
            return "451 4.4.2 not carried out yet", ()  # which nobody reads
        copies = 2 if "apply-twice" in treatment else 1
        sent, effects = self._deliver(mail, wanted, copies, treatment.request)
        if "fail-after-commit" in treatment:
            return "451 4.3.0 the service failed after it had committed", effects
        return f"250 2.0.0 OK: queued as {sent.id}", effects

    def _land(self, mail: Mail) -> Sequence[Effect]:
        """Send a mail whose sender is gone; see `RequestInfo.later`."""
        request = self._conduct.treat_landing("send").request
        return self._deliver(mail, effect_of(mail), 1, request)[1]

    def _deliver(
        self, mail: Mail, wanted: Effect, copies: int, request: int
    ) -> tuple[Sent, Sequence[Effect]]:
        circumstances = Circumstances(
            now_s=self._conduct.now_s(), request=request, apply_twice=copies > 1
        )
        sent, effects = self._core.deliver(mail, wanted, circumstances)
        self._book.book(effects)
        return sent, effects

    async def _misbehave(self, server: SMTP, answer: _Answer, treatment: Treatment) -> None:
        if "lose-reply" in treatment or postpones(treatment):
            cut = _cut(server)
            self._lost(answer)
            raise cut
        delay_s = self._conduct.delay_s(treatment)
        if delay_s > 0:
            try:
                await asyncio.sleep(delay_s)
            except asyncio.CancelledError:  # nobody waits for the answer any more
                self._lost(answer)
                raise

    def _lost(self, answer: _Answer) -> None:
        self.observer.answered(answer.number, answer.status, deduped=False, delivered=False)

    async def handle_exception(self, error: Exception) -> str:
        """Not the client's fault: shown where asyncio shows a failure in any other protocol."""
        asyncio.get_running_loop().call_exception_handler(
            {"message": "the fake SMTP server failed", "exception": error}
        )
        return "451 4.3.0 the fake server itself failed; see its log"


def _cut(server: SMTP) -> asyncio.CancelledError:
    """Cut the connection; to be raised, which is how a session of aiosmtpd ends without a word."""
    if isinstance(server.transport, asyncio.Transport):
        server.transport.abort()
    return asyncio.CancelledError()


_TEMPORARY = frozenset({408, 425, 429})


def _refusal(refused: Refused) -> str:
    """An HTTP refusal in SMTP's words (RFC 5321, 4.2.2 and 4.2.3; RFC 3463)."""
    if refused.status == 503:
        return f"421 4.3.2 {refused.message}"
    if refused.status >= 500 or refused.status in _TEMPORARY:
        return f"451 4.3.0 {refused.message}"
    return f"550 5.7.1 {refused.message}"


_COMMANDS = [name for name in dir(SMTP) if name.startswith(("auth_", "smtp_"))]


def _anyone(*_args: object) -> AuthResult:
    return AuthResult(success=True)


class _Protocol(SMTP):
    """aiosmtpd's server side of one connection."""

    line_length_limit = LINE_BYTES_MAX

    def __init__(
        self, post: _Post, connections: Connections, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(
            post,
            enable_SMTPUTF8=True,
            hostname=HOSTNAME,  # the default asks a name server
            ident="SMTP",
            auth_require_tls=False,
            authenticator=_anyone,
            loop=loop,
        )
        self._connections = connections
        self._observer = post.observer
        self._link: asyncio.Transport | None = None

    def __dir__(self) -> list[str]:
        # aiosmtpd looks through all names of each new connection for those of its commands.
        return _COMMANDS

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            # "Drained" has to mean that the kernel has it all.
            transport.set_write_buffer_limits(high=0)
            self._link = transport
        self._connections.add(transport)
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        # First the session ends, and tells the observer of an answer that it still owed; then
        # whoever waits for the last connection hears of it.
        super().connection_lost(error)
        if self._link is not None:
            self._connections.discard(self._link)
            self._link = None

    async def push(self, status: str | bytes) -> None:
        line = status.encode("utf-8", "replace") if isinstance(status, str) else status
        if isinstance(status, _Answer):
            self._observer.answering(status.number)
        self._writer.write(line + b"\r\n")
        delivered = False
        try:
            delivered = await self._with_kernel()
        finally:
            if isinstance(status, _Answer):
                self._observer.answered(
                    status.number, status.status, deduped=False, delivered=delivered
                )

    async def _with_kernel(self) -> bool:
        """Whether everything that was written has left this process."""
        link = self._link
        if link is None or link.is_closing():
            return False
        if link.get_write_buffer_size() > 0:
            try:
                await self._writer.drain()
            except ConnectionError:
                return False
        return not link.is_closing()

    def _getaddr(self, arg: str) -> tuple[str | None, str | None]:
        # The general parser takes as long as all else that a RCPT costs.
        plain = _PLAIN_PATH.fullmatch(arg)
        return (plain[1], plain[2]) if plain else super()._getaddr(arg)
