"""The official ``stripe`` client, unmodified, against the payments service over HTTP."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import stripe

from chaoskit.model.behaviours import parse_behaviour
from chaoskit.model.effects import Effect
from chaoskit.model.hosting import RequestInfo, Service, ServiceSettings
from fake_services.payments.service import create


class EverythingGoes:
    """An observer that kills nobody and remembers the requests."""

    def __init__(self) -> None:
        self.requests: list[RequestInfo] = []

    def received(self, request: RequestInfo) -> int | None:
        """Number it."""
        self.requests.append(request)
        return len(self.requests)

    def applied(self, number: int, effects: Sequence[Effect]) -> bool:
        """Go on."""
        return True

    def answering(self, number: int) -> None:
        """Go on."""

    def answered(self, number: int, status: int, *, deduped: bool, delivered: bool) -> None:
        """Go on."""

    def landed(self, number: int, effects: Sequence[Effect]) -> None:
        """Later than its sender thinks."""


class Running:
    """A started service on a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self.service: Service = create()
        self.observer = EverythingGoes()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        start = self.service.start(self.observer, ServiceSettings(folder))
        self.url = (
            asyncio.run_coroutine_threadsafe(start, self._loop).result(300).placeholders["url"]
        )

    def reset(self, *behaviours: str) -> None:
        """A new world that misbehaves so."""
        done = Future[None]()
        parsed = [parse_behaviour(text) for text in behaviours]

        def on_its_thread() -> None:
            self.service.reset(1, parsed)
            self.observer.requests.clear()
            done.set_result(None)

        self._loop.call_soon_threadsafe(on_its_thread)
        done.result(300)

    def stop(self) -> None:
        """End the service and its thread."""
        asyncio.run_coroutine_threadsafe(self.service.stop(), self._loop).result(300)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The service, started once."""
    running = Running(tmp_path_factory.mktemp("payments"))
    yield running
    running.stop()


@pytest.fixture
def payments(running: Running, monkeypatch: pytest.MonkeyPatch) -> Running:
    """An empty world, and the client's global settings pointing at it."""
    running.reset()
    monkeypatch.setattr(stripe, "api_base", running.url)
    monkeypatch.setattr(stripe, "api_key", "sk_test_chaoskit")
    monkeypatch.setattr(stripe, "max_network_retries", 2)
    return running


def client_of(payments: Running) -> Any:
    """The client in its newer form."""
    return stripe.StripeClient(
        "sk_test_chaoskit", base_addresses={"api": payments.url}, max_network_retries=0
    ).v1


def test_a_charge_by_the_module_is_in_the_ledger(payments: Running) -> None:
    """What the client sends is what the ledger says, with the client's key."""
    made = stripe.Charge.create(
        amount=4200,
        currency="eur",
        source="tok_visa",
        metadata={"order": "17", "customer_name": "Ann"},
        idempotency_key="order-17",
    )
    (effect,) = payments.service.ledger()
    assert effect.in_words() == "charge of 42.00 EUR to Ann"
    assert (effect.key, effect.ref) == ("order-17", made.id)
    assert made.last_response is not None
    assert (made.last_response.request_id or "").startswith("req_")
    assert stripe.Charge.retrieve(made.id).metadata["order"] == "17"
    assert [request.operation for request in payments.observer.requests] == [
        "charge",
        "charge.retrieve",
    ]
    assert payments.observer.requests[0].wants is not None


def test_the_newer_client_goes_through_a_whole_payment(payments: Running) -> None:
    """Customer, intent, confirmation, refund, and everything found again."""
    client = client_of(payments)
    ann = client.customers.create({"name": "Ann", "email": "ann@example.org"})
    intent = client.payment_intents.create(
        {"amount": 999, "currency": "usd", "customer": ann.id, "metadata": {"order": "9"}}
    )
    assert not [effect for effect in payments.service.ledger() if effect.kind == "charge"]
    paid = client.payment_intents.confirm(
        intent.id, {"payment_method": "pm_card_visa", "expand": ["latest_charge"]}
    )
    assert (paid.status, paid.latest_charge.amount) == ("succeeded", 999)
    refund = client.refunds.create({"payment_intent": intent.id, "amount": 99})
    assert client.refunds.retrieve(refund.id).charge == paid.latest_charge.id
    assert client.customers.retrieve(ann.id).name == "Ann"
    assert client.balance.retrieve().available[0].amount == 900
    words = [effect.in_words() for effect in payments.service.ledger()]
    assert words[1:] == ["charge of 9.99 USD to Ann", "refund of 0.99 USD to Ann"]


def test_the_same_key_gets_the_same_charge(payments: Running) -> None:
    """A second request with the key is answered with the first one's charge."""
    params: Any = {"amount": 100, "currency": "eur", "source": "tok_visa"}
    first = stripe.Charge.create(**params, idempotency_key="k")
    second = stripe.Charge.create(**params, idempotency_key="k")
    assert first.id == second.id
    assert second.last_response is not None
    assert second.last_response.headers["Idempotent-Replayed"] == "true"
    assert len(payments.service.ledger()) == 1
    with pytest.raises(stripe.IdempotencyError):
        stripe.Charge.create(**{**params, "amount": 101}, idempotency_key="k")


def test_a_lost_reply_is_retried_by_the_client_and_charged_once(payments: Running) -> None:
    """The client repeats its own key, so that the retry finds the charge that was made."""
    payments.reset("lose-reply@payments.charge#1")
    made = stripe.Charge.create(amount=100, currency="eur", source="tok_visa")
    assert [effect.ref for effect in payments.service.ledger()] == [made.id]
    assert len(payments.observer.requests) == 2


def test_forgotten_keys_let_the_retry_charge_again(payments: Running) -> None:
    """The same loss with a service that forgets its keys is a double charge."""
    payments.reset("lose-reply@payments.charge#1", "forget-keys@payments.charge#*")
    stripe.Charge.create(amount=100, currency="eur", source="tok_visa")
    assert len(payments.service.ledger()) == 2


def test_each_error_becomes_the_clients_own_exception(payments: Running) -> None:
    """Declined cards, wrong parameters, unknown ids and routes are told apart by the client."""
    client = client_of(payments)
    with pytest.raises(stripe.CardError) as declined:
        stripe.Charge.create(amount=100, currency="eur", source="tok_chargeDeclined")
    assert declined.value.code == "card_declined"
    with pytest.raises(stripe.InvalidRequestError) as missing:
        client.charges.create({"currency": "eur"})
    assert (missing.value.param, missing.value.code) == ("amount", "parameter_missing")
    with pytest.raises(stripe.InvalidRequestError) as nobody:
        stripe.Charge.retrieve("ch_nobody")
    assert (nobody.value.http_status, nobody.value.code) == (404, "resource_missing")
    with pytest.raises(stripe.InvalidRequestError, match="Unrecognized request URL"):
        client.products.list()
    assert not payments.service.ledger()


def test_lists_and_searches_are_paged_by_the_client(payments: Running) -> None:
    """Auto-paging walks every page of a list, forwards and back, and of a search."""
    client = client_of(payments)
    refs = [
        client.charges.create(
            {"amount": 100 + i, "currency": "eur", "metadata": {"batch": f"b{i % 2}"}}
        ).id
        for i in range(7)
    ]
    listed = client.charges.list({"limit": 3})
    assert [charge.id for charge in listed.auto_paging_iter()] == refs[::-1]
    back = client.charges.list({"limit": 2, "ending_before": refs[0]})
    assert [charge.id for charge in back.auto_paging_iter()] == refs[1:]
    query = "metadata['batch']:'b0' AND amount<106"
    found = stripe.Charge.search(query=query, limit=2)
    assert [charge.id for charge in found.auto_paging_iter()] == refs[0:6:2][::-1]
    assert stripe.Customer.search(query="email:'nobody@example.org'").is_empty
