"""The services in a process of their own, with their page, as a user starts them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from pathlib import Path
from smtplib import SMTP
from typing import IO, Any

import httpx
import stripe

TABLES = "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, password TEXT);"

JSON = dict[str, Any]


class Running:
    """Serving: the variables that were printed, what was printed after them, and ways to ask."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        self.environment: dict[str, str] = {}
        while "CHAOSKIT_PAGE_TOKEN" not in self.environment:
            name, _, value = process.stdout.readline().removeprefix("export ").partition("=")
            assert value, "it has ended"
            self.environment[name] = value.rstrip("\n")
        self.url = self.environment["CHAOSKIT_PAGE_URL"]
        # Who does not read what is printed makes it stand still.
        self._reader = threading.Thread(target=self._read, args=(process.stdout,), daemon=True)
        self._reader.start()

    @staticmethod
    def _read(lines: IO[str]) -> None:
        for _ in lines:
            pass

    def ask(self, path: str, **headers: str) -> httpx.Response:
        """A GET, as a script would send it."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx.get(f"{self.url}{path}", headers=given, timeout=300)

    def told(self, path: str) -> Any:
        """The JSON of a GET."""
        answer = self.ask(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def act(self, path: str, body: object, **headers: str) -> httpx.Response:
        """A POST with the token, as a script would send it."""
        given = {"chaoskit-page-token": self.environment["CHAOSKIT_PAGE_TOKEN"]}
        given.update({name.replace("_", "-"): value for name, value in headers.items()})
        return httpx.post(f"{self.url}{path}", json=body, headers=given, timeout=300)

    def after(self, version: int) -> JSON:
        """The state once it is newer than ``version``."""
        state: JSON = self.told(f"/api/state?after={version}&wait_s=25")
        return state

    def charge(self, order: int, key: str | None = None, **more: Any) -> stripe.Charge:
        """A charge by the official client, which does not try again."""
        client = stripe.StripeClient(
            "sk_test_x",
            base_addresses={"api": self.environment["CHAOSKIT_PAYMENTS_URL"]},
            max_network_retries=0,
        )
        params: Any = {"amount": 4200, "currency": "eur", "source": "tok_visa",
                       "metadata": {"order": str(order)}, **more}  # fmt: skip
        return client.v1.charges.create(params, {"idempotency_key": key} if key else {})

    def post(self) -> SMTP:
        """A connection to the mail server."""
        return SMTP(
            self.environment["CHAOSKIT_SMTP_HOST"],
            int(self.environment["CHAOSKIT_SMTP_PORT"]),
            timeout=300,
        )

    def mail(self, subject: str, text: str = "Hello", html: str = "") -> None:
        """A mail by SMTP."""
        mail = EmailMessage()
        mail["From"], mail["To"], mail["Subject"] = "shop@example.com", "ann@example.com", subject
        mail.set_content(text)
        if html:
            mail.add_alternative(html, subtype="html")
        with self.post() as server:
            server.send_message(mail)

    @property
    def database(self) -> Path:
        """The file of the database."""
        return Path(self.environment["CHAOSKIT_DATABASE_URL"].removeprefix("sqlite:///"))


@contextmanager
def running(folder: Path, *words: str) -> Iterator[Running]:
    """``python -m fake_services --page``, until the block ends."""
    tables = folder / "tables.sql"
    tables.write_text(TABLES, encoding="utf-8")
    command = [sys.executable, "-m", "fake_services", "--page", "--tables", str(tables), *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield Running(process)
    finally:
        process.terminate()
        assert process.wait(300) == 0
