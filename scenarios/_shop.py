"""The clients of a small shop, as its tasks use them: charge a card, send a mail, open the books.

Standard library only; the addresses come from the environment, as in any deployed program.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
from collections.abc import Mapping
from http.client import HTTPConnection, parse_headers
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

STATE = Path(os.environ.get("CHAOSKIT_STATE_DIR", "."))

Customer = dict[str, Any]


def inputs() -> Any:
    """The task's inputs."""
    return json.loads(Path(os.environ["CHAOSKIT_INPUTS"]).read_text(encoding="utf-8"))


def customers(seed: int, number: int = 40) -> list[Customer]:
    """``number`` customers with what they owe, the same for the same seed.

    From sixteen on, one of the last ten is the seventh once more: two legitimate purchases that
    look exactly alike.
    """
    from faker import Faker

    fake = Faker(["en_US", "de_DE", "fr_FR", "ja_JP"])
    Faker.seed(seed)
    made = [
        {
            "name": fake.name(),
            "email": f"{fake.user_name()}{i}@example.com",
            "cents": fake.random_int(500, 25_000),
        }
        for i in range(number)
    ]
    if number > 15:
        made[-9] = dict(made[6])
    return made


class Shop:
    """One connection to each service, kept open; ``payments`` is the name of the one to pay by."""

    def __init__(self, payments: str = "payments") -> None:
        self._payments = _connect(f"CHAOSKIT_{payments.upper()}_URL")
        self._email = _connect("CHAOSKIT_EMAIL_URL")
        self._jobs = _connect("CHAOSKIT_JOBS_URL")

    def charge(
        self, customer: Customer, key: str | None = None, reference: str | None = None
    ) -> str:
        """Charge what the customer owes; the charge's id.

        Args:
            customer: whom.
            key: the idempotency key, None for none.
            reference: kept with the charge, so that it can be found again; not part of the deed.
        """
        form = {
            "amount": customer["cents"],
            "currency": "eur",
            "source": "tok_visa",
            "receipt_email": customer["email"],
            "description": customer["name"],
        }
        if reference is not None:
            form["metadata[reference]"] = reference
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if key is not None:
            headers["Idempotency-Key"] = key
        made = _ask(self._payments, "POST", "/v1/charges", urlencode(form), headers)
        return str(made["id"])

    def refund(self, charge: str, cents: int, key: str) -> str:
        """Give ``cents`` of a charge back; the refund's id."""
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Idempotency-Key": key,
        }
        form = urlencode({"charge": charge, "amount": cents})
        return str(_ask(self._payments, "POST", "/v1/refunds", form, headers)["id"])

    def find_charge(self, reference: str) -> str | None:
        """The id of the charge with this reference, None if there is none."""
        query = quote(f"metadata['reference']:'{reference}'")
        found = _ask(self._payments, "GET", f"/v1/charges/search?query={query}")["data"]
        return str(found[0]["id"]) if found else None

    def send(
        self,
        to: str,
        subject: str,
        text: str,
        message_id: str | None = None,
        key: str | None = None,
    ) -> str:
        """Send a mail through the provider's API; its id."""
        mail = {"from": "shop@example.com", "to": to, "subject": subject, "text": text}
        if message_id is not None:
            mail["message_id"] = message_id
        headers = {"Content-Type": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key
        return str(_ask(self._email, "POST", "/v1/messages", json.dumps(mail), headers)["id"])

    def find_mail(self, message_id: str) -> str | None:
        """The id of the mail with this Message-ID, None if there is none."""
        found = _ask(self._email, "GET", f"/v1/messages?message_id={quote(message_id)}")["data"]
        return str(found[0]["id"]) if found else None

    def submit(self, name: str, key: str | None = None) -> str:
        """Start a remote job; its id. It is done after some polls."""
        headers = {"Content-Type": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key
        return str(_ask(self._jobs, "POST", "/jobs", json.dumps({"name": name}), headers)["id"])

    def job_is_done(self, job: str) -> bool:
        """Ask for a job."""
        return bool(_ask(self._jobs, "GET", f"/jobs/{job}")["status"] == "done")


def charge_in_one_go(customers: Mapping[str, Customer]) -> None:
    """Charge each customer under its key, all requests written before the first answer is read."""
    url = urlsplit(os.environ["CHAOSKIT_PAYMENTS_URL"])
    requests = []
    for key, customer in customers.items():
        form = {"amount": customer["cents"], "currency": "eur", "source": "tok_visa"}
        body = urlencode({**form, "receipt_email": customer["email"]})
        requests.append(
            "POST /v1/charges HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer sk_test_shop\r\n"
            "Content-Type: application/x-www-form-urlencoded\r\n"
            f"Idempotency-Key: {key}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        )
    with socket.create_connection((url.hostname or "", url.port or 0)) as wire:
        wire.sendall("".join(requests).encode())
        answers = wire.makefile("rb")
        for _ in requests:
            status = answers.readline().split()[1]
            answers.read(int(parse_headers(answers)["content-length"]))
            if status != b"200":
                raise RuntimeError(f"a charge was answered with {status.decode()}")


def receipt(customer: Customer) -> tuple[str, str]:
    """Subject and text of a customer's receipt."""
    amount = f"{customer['cents'] / 100:.2f} EUR"
    return f"Your receipt over {amount}", f"Dear {customer['name']},\nwe charged {amount}.\n"


def database() -> sqlite3.Connection:
    """The shop's books."""
    path = os.environ["CHAOSKIT_DATABASE_URL"].removeprefix("sqlite:///")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    return connection


def postgres_url() -> str:
    """Where the shop's PostgreSQL database is."""
    return os.environ["CHAOSKIT_DATABASE_URL"]


def postgres() -> Any:
    """The shop's books in PostgreSQL; each statement outside of a block is its own commit."""
    import psycopg

    return psycopg.connect(postgres_url(), autocommit=True)


def _connect(variable: str) -> HTTPConnection | None:
    url = os.environ.get(variable)
    if url is None:
        return None
    parts = urlsplit(url)
    return HTTPConnection(parts.hostname or "", parts.port, timeout=30)


def _ask(
    connection: HTTPConnection | None,
    method: str,
    path: str,
    body: str | None = None,
    headers: dict[str, str] | None = None,
) -> Any:
    assert connection is not None, "this task needs a service that was not started"
    headers = {"Authorization": "Bearer sk_test_shop", **(headers or {})}
    data = body.encode() if body is not None else None
    connection.request(method, path, data, headers)
    response = connection.getresponse()
    answer = json.loads(response.read())
    if response.status >= 400:
        raise RuntimeError(f"{method} {path}: {response.status} {answer}")
    return answer


class Checkpoint:
    """A home-made checkpoint: one JSON file, written beside and renamed, so never torn.

    What the broken scenarios lack is never this part.
    """

    def __init__(self, name: str = "checkpoint.json") -> None:
        self._file = STATE / name
        self.values: dict[str, Any] = {}
        if self._file.exists():
            self.values = json.loads(self._file.read_text(encoding="utf-8"))

    def save(self, **values: object) -> None:
        """Keep ``values`` with what is there already."""
        self.values |= values
        beside = self._file.with_suffix(".tmp")
        with beside.open("w", encoding="utf-8") as handle:
            json.dump(self.values, handle)
            handle.flush()
            os.fsync(handle.fileno())
        beside.replace(self._file)
