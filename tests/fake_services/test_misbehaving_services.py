"""Payments and email that lag, refuse, forget and carry out late, with real clients."""

from __future__ import annotations

import asyncio
import smtplib
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from chaoskit.model.behaviours import parse_behaviour
from chaoskit.model.hosting import (
    Address,
    Clocked,
    Misbehaving,
    Observer,
    Postponing,
    Service,
    ServiceSettings,
)
from fake_services.email.service import create as create_email
from fake_services.payments.service import create as create_payments
from tests.fake_services.notes import Watcher


def with_service(
    create: Callable[[], Service],
    talk: Callable[[httpx.AsyncClient, Service, Address], Awaitable[None]],
    *behaviours: str,
    observer: Observer | None = None,
) -> None:
    """Let ``talk`` speak to a fresh service."""

    async def go() -> None:
        service = create()
        address = await service.start(observer or Watcher(), ServiceSettings(Path()))
        service.reset(1, [parse_behaviour(text) for text in behaviours])
        headers = {"Authorization": "Bearer sk_test_1"}
        try:
            base = address.placeholders["url"]
            async with httpx.AsyncClient(base_url=base, headers=headers, timeout=300) as client:
                await talk(client, service, address)
        finally:
            await service.stop()

    asyncio.run(go())


async def charge(client: httpx.AsyncClient, order: int, key: str | None = None) -> httpx.Response:
    """One charge."""
    form = {"amount": "4200", "currency": "eur", "source": "tok_visa", "metadata[order]": order}
    return await client.post(
        "/v1/charges", data=form, headers={"Idempotency-Key": key} if key else {}
    )


async def send(client: httpx.AsyncClient, subject: str, key: str | None = None) -> httpx.Response:
    """One mail."""
    mail = {"from": "shop@example.com", "to": "ann@example.com", "subject": subject}
    return await client.post(
        "/v1/messages", json=mail, headers={"Idempotency-Key": key} if key else {}
    )


async def found(client: httpx.AsyncClient, path: str) -> int:
    """How many things a look-up finds."""
    answer = await client.get(path)
    assert answer.status_code == 200
    return len(answer.json()["data"])


SEARCH = "/v1/charges/search?query=metadata%5B'order'%5D:'1'"


@pytest.mark.parametrize("path", [SEARCH, "/v1/charges", "/v1/charges?limit=1"])
def test_a_look_up_of_payments_lags_behind_and_a_reading_by_id_does_not(path: str) -> None:
    """With a lag of two a charge is found by the third request after it, and no sooner."""

    async def talk(client: httpx.AsyncClient, service: Service, _: Address) -> None:
        made = (await charge(client, 1)).json()["id"]
        assert await found(client, path) == 0
        assert (await client.get(f"/v1/charges/{made}")).status_code == 200
        assert await found(client, path) == 1

    with_service(create_payments, talk, "lag:2@payments.charge.*#*")


def test_a_search_that_lags_sees_what_a_thing_was_before() -> None:
    """A confirmation that it does not know of yet leaves an intent as it was."""

    async def talk(client: httpx.AsyncClient, service: Service, _: Address) -> None:
        form = {"amount": "4200", "currency": "eur", "payment_method": "pm_card_visa"}
        made = (await client.post("/v1/payment_intents", data=form)).json()["id"]
        await client.get("/v1/balance")
        await client.post(f"/v1/payment_intents/{made}/confirm")
        succeeded = "/v1/payment_intents/search?query=status:'succeeded'"
        assert await found(client, succeeded) == 0
        assert (await client.get(f"/v1/payment_intents/{made}")).json()["status"] == "succeeded"
        assert await found(client, succeeded) == 1

    with_service(create_payments, talk, "lag:1@payments.payment_intent.search#1")


@pytest.mark.parametrize("path", ["/v1/messages?subject=Hi", "/v1/messages"])
def test_a_look_up_of_email_lags_behind_as_well(path: str) -> None:
    """Whichever way it is looked up; by its id it is there at once."""

    async def talk(client: httpx.AsyncClient, service: Service, _: Address) -> None:
        made = (await send(client, "Hi")).json()["id"]
        assert await found(client, path) == 0
        assert (await client.get(f"/v1/messages/{made}")).status_code == 200
        await send(client, "Hi")
        assert await found(client, path) == 1

    with_service(create_email, talk, "lag:2@email.*#*")


@pytest.mark.parametrize(("create", "ask"), [(create_payments, charge), (create_email, send)])
def test_a_key_is_forgotten_a_day_later_by_the_service_s_clock(
    create: Callable[[], Service], ask: Callable[..., Awaitable[httpx.Response]]
) -> None:
    """Within 24 hours the same key is taken for a repeat; a week later it is done again."""

    async def talk(client: httpx.AsyncClient, service: Service, _: Address) -> None:
        assert isinstance(service, Clocked)
        await ask(client, 1, "k") if ask is charge else await ask(client, "Hi", "k")
        again = (client, 1, "k") if ask is charge else (client, "Hi", "k")
        service.shift_clock(23 * 3600.0)
        assert "idempotent-replayed" in (await ask(*again)).headers
        assert len(service.ledger()) == 1
        service.shift_clock(7 * 86400.0)
        assert "idempotent-replayed" not in (await ask(*again)).headers
        assert len(service.ledger()) == 2
        service.reset(1, ())
        await ask(*again)
        assert "idempotent-replayed" in (await ask(*again)).headers

    with_service(create, talk)


@pytest.mark.parametrize(
    ("behaviour", "status", "kind"),
    [
        ("reject:402@payments.charge#1", 402, "card_error"),
        ("reject:429@payments.charge#1", 429, "invalid_request_error"),
        ("reject:500@payments.charge#1", 500, "api_error"),
        ("down:1@payments.*#1", 503, "api_error"),
        ("fence@payments.*#*", 412, "invalid_request_error"),
    ],
)
def test_payments_refuses_in_stripe_s_words(behaviour: str, status: int, kind: str) -> None:
    """And uses up no key: the same request is done when it is let through."""

    async def talk(client: httpx.AsyncClient, service: Service, _: Address) -> None:
        assert isinstance(service, Misbehaving)
        if status == 412:
            client.headers["Chaoskit-Fencing-Token"] = "2"
            await client.get("/v1/balance")
            client.headers["Chaoskit-Fencing-Token"] = "1"
        answer = await charge(client, 1, "k")
        assert (answer.status_code, answer.json()["error"]["type"]) == (status, kind)
        assert not service.ledger()
        service.behave(())
        answer = await charge(client, 1, "k")
        assert answer.status_code == 200
        assert "idempotent-replayed" not in answer.headers

    with_service(create_payments, talk, behaviour)


def test_a_retry_with_its_key_and_the_original_that_lands_late_are_one_charge() -> None:
    """Whichever of the two comes first; without a key they are two."""

    async def talk(client: httpx.AsyncClient, service: Service, _: Address) -> None:
        for key in ("k", None):
            with pytest.raises(httpx.RemoteProtocolError):
                await charge(client, 1, key)
            await charge(client, 1, key)
        assert isinstance(service, Postponing)
        service.end()
        assert [effect.key for effect in service.ledger()] == ["k", None, None]

    behaviours = ("commit-late:1@payments.charge#1", "commit-late:1@payments.charge#3")
    with_service(create_payments, talk, *behaviours)


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        ("down:1@email.*#1", 421),
        ("reject:429@email.send#1", 451),
        ("reject:500@email.send#1", 451),
        ("reject:402@email.send#1", 550),
        ("commit-late:2@email.send#1", None),
        ("commit-late:end@email.send#1", None),
    ],
)
def test_smtp_says_it_in_its_own_words(behaviour: str, code: int | None) -> None:
    """Refused before anything is applied, or cut and sent later; counted with the other door's."""

    def by_smtp(address: Address) -> object:
        at = address.placeholders
        with smtplib.SMTP(at["smtp_host"], int(at["smtp_port"]), local_hostname="c") as smtp:
            try:
                smtp.sendmail("shop@example.com", "ann@example.com", "Subject: first\r\n\r\nHi")
            except smtplib.SMTPDataError as refused:
                return refused.smtp_code
            except smtplib.SMTPServerDisconnected:
                return None
        return 250

    async def talk(client: httpx.AsyncClient, service: Service, address: Address) -> None:
        assert isinstance(service, Postponing)
        assert await asyncio.to_thread(by_smtp, address) == code
        assert not service.ledger()
        for subject in ("second", "third"):
            await send(client, subject)
        service.end()
        subjects = [dict(effect.fields)["subject"] for effect in service.ledger()]
        late = ["first"] if code is None else []
        assert subjects == ["second", "third", *late]

    with_service(create_email, talk, behaviour)
