"""The email service: one mailbox behind an HTTP door and an SMTP door."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from chaoskit.model.behaviours import Behaviour
from chaoskit.model.effects import Effect
from chaoskit.model.errors import UsageError
from chaoskit.model.hosting import Address, Observer, Service, ServiceSettings
from fake_services.email.core import EmailCore
from fake_services.email.smtp import SmtpDoor
from fake_services.host import LOOPBACK, HttpService
from fake_services.shown import Shown


class EmailService:
    """Implements `chaoskit.model.hosting.Service`.

    The port of the settings is the HTTP door's; the option ``smtp_port`` is the other one's, any
    free one if it is left out. Both doors send into the same mailbox, book into the same ledger
    and count the same requests, so that ``lose-reply@email.send#2`` is the second mail, whichever
    way it came.
    """

    def __init__(self) -> None:
        core = EmailCore()
        self._http = HttpService(core)
        self._smtp = SmtpDoor(core, self._http.ledger_book, self._http.conduct)
        self.name = core.name
        self.operations = core.operations
        self.keep_keys = core.keep_keys

    async def start(self, observer: Observer, settings: ServiceSettings) -> Address:
        """Listen at both doors; see `Service.start`.

        Raises:
            UsageError: a port is taken, or ``smtp_port`` is no port.
        """
        smtp_port = _port(settings.options.get("smtp_port", "0"))
        http = await self._http.start(observer, settings)
        try:
            smtp_port = await self._smtp.start(observer, smtp_port)
        except UsageError:
            await self._http.stop()
            raise
        return Address(
            {**http.placeholders, "smtp_host": LOOPBACK, "smtp_port": str(smtp_port)},
            {
                **http.environment,
                "CHAOSKIT_SMTP_HOST": LOOPBACK,
                "CHAOSKIT_SMTP_PORT": str(smtp_port),
            },
            (*http.ports, smtp_port),
        )

    def reset(self, seed: int, behaviours: Sequence[Behaviour]) -> None:
        """An empty mailbox; see `Service.reset`."""
        self._http.reset(seed, behaviours)

    async def quiesce(self, timeout_s: float) -> bool:
        """Every connection of both doors has ended; see `Service.quiesce`."""
        return all(
            await asyncio.gather(self._http.quiesce(timeout_s), self._smtp.quiesce(timeout_s))
        )

    def collect(self) -> Sequence[Effect]:
        """Nothing: every mail belongs to a request."""
        return ()

    def ledger(self) -> Sequence[Effect]:
        """Every mail since the reset, in order."""
        return self._http.ledger()

    def delay_replies(self, seconds: float, total_s: float) -> None:
        """See `chaoskit.model.hosting.Patient`."""
        self._http.delay_replies(seconds, total_s)

    def behave(self, behaviours: Sequence[Behaviour]) -> None:
        """See `chaoskit.model.hosting.Misbehaving`."""
        self._http.behave(behaviours)

    def shift_clock(self, seconds: float) -> None:
        """See `chaoskit.model.hosting.Clocked`."""
        self._http.shift_clock(seconds)

    @property
    def postponed(self) -> int:
        """See `chaoskit.model.hosting.Postponing`."""
        return self._http.postponed

    def end(self) -> None:
        """See `chaoskit.model.hosting.Postponing`."""
        self._http.end()

    def show(self, ref: str) -> Shown | None:
        """See `fake_services.shown.Showing`."""
        return self._http.show(ref)

    def save(self) -> bytes:
        """See `Restorable.save`: the mailbox is the HTTP door's."""
        return self._http.save()

    def restore(self, saved: bytes) -> None:
        """See `Restorable.restore`."""
        self._http.restore(saved)

    async def stop(self) -> None:
        """Close both doors."""
        await asyncio.gather(self._http.stop(), self._smtp.stop())


def create() -> Service:
    """The factory that the ``chaoskit.services`` entry point names."""
    return EmailService()


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) < 65536:
        return int(text)
    raise UsageError(
        f"email: smtp_port {text!r} is no port; write a number up to 65535, or 0 for any free one"
    )
