"""What is charged, refunded and refused, and what the ledger says of it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_services.payments.core import PaymentsCore
from tests.fake_services.asking import CHARGE, JSON, TWICE, post, request, send


def get(core: PaymentsCore, path: str, form: Mapping[str, object] | None = None) -> JSON:
    """JSON of a GET."""
    answer: JSON = json.loads(send(core, request("GET", path, form)).reply.body)
    return answer


def test_a_charge_is_booked_in_the_callers_words() -> None:
    """The effect has what was asked for, whom it concerns and the key; the answer is Stripe's."""
    core = PaymentsCore()
    form = {**CHARGE, "metadata[order]": "17", "metadata[customer_name]": "Ann", "expand[]": "x"}
    asked = request("POST", "/v1/charges", form, idempotency_key="order-17")
    wants = core.understand(asked).wants
    outcome = send(core, asked)
    made = json.loads(outcome.reply.body)
    (effect,) = outcome.effects
    assert effect.in_words() == "charge of 42.00 EUR to Ann"
    assert effect.fields == (
        ("amount", "4200"),
        ("currency", "eur"),
        ("metadata.customer_name", "Ann"),
        ("metadata.order", "17"),
        ("source", "tok_visa"),
    )
    assert (effect.operation, effect.key, effect.ref) == ("payments.charge", "order-17", made["id"])
    assert wants == msgspec.structs.replace(effect, ref="")
    assert (made["status"], made["paid"], made["created"]) == ("succeeded", True, 1_700_000_000)
    assert made["metadata"] == {"order": "17", "customer_name": "Ann"}


@pytest.mark.parametrize(
    ("extra", "who"),
    [
        ({"customer": "cus_elsewhere"}, "cus_elsewhere"),
        ({"customer": "cus_elsewhere", "description": "Order 17"}, "Order 17"),
        ({"receipt_email": "ann@example.org", "description": "Order 17"}, "ann@example.org"),
        ({"metadata[customer_name]": "Ann", "receipt_email": "a@example.org"}, "Ann"),
        ({}, ""),
    ],
)
def test_the_best_human_name_is_taken(extra: JSON, who: str) -> None:
    """A report names a person rather than an id wherever it can."""
    _, _, outcome = post(PaymentsCore(), "/v1/charges", {**CHARGE, **extra})
    assert outcome.effects[0].who == who


def test_a_stored_customer_is_called_by_name_or_address() -> None:
    """An id of this account is looked up."""
    core = PaymentsCore()
    _, ann, outcome = post(core, "/v1/customers", {"name": "Ann", "email": "ann@example.org"})
    assert (outcome.effects[0].kind, outcome.effects[0].who) == ("customer", "Ann")
    _, bob, _ = post(core, "/v1/customers", {"email": "bob@example.org"})
    for customer, who in ((ann, "Ann"), (bob, "bob@example.org")):
        _, _, charged = post(core, "/v1/charges", {**CHARGE, "customer": customer["id"]})
        assert charged.effects[0].who == who


@pytest.mark.parametrize(
    ("form", "code", "param"),
    [
        ({"currency": "eur"}, "parameter_missing", "amount"),
        ({"amount": "1"}, "parameter_missing", "currency"),
        ({"amount": "", "currency": "eur"}, "parameter_invalid_empty", "amount"),
        ({"amount": "4.2", "currency": "eur"}, "parameter_invalid_integer", "amount"),
        ({"amount": "٤٢", "currency": "eur"}, "parameter_invalid_integer", "amount"),
        ({"amount": "9" * 5000, "currency": "eur"}, "parameter_invalid_integer", "amount"),
        ({"amount": "0", "currency": "eur"}, "parameter_invalid_integer", "amount"),
        ({"amount": "-1", "currency": "eur"}, "parameter_invalid_integer", "amount"),
        ({"amount": "100000000", "currency": "eur"}, "amount_too_large", "amount"),
        ({"amount[x]": "1", "currency": "eur"}, None, "amount"),
        ({"amount": "1", "currency": "euro"}, None, "currency"),
        ({**CHARGE, "metadata": "x"}, None, "metadata"),
        ({**CHARGE, "metadata[a][b]": "x"}, None, "metadata[a]"),
        ({**CHARGE, "capture": "false"}, None, "capture"),
        ({**CHARGE, "expand": "customer"}, None, "expand"),
    ],
)
def test_ill_formed_parameters_get_stripes_400(form: JSON, code: str | None, param: str) -> None:
    """The error names the parameter, and the request wants nothing and does nothing."""
    core = PaymentsCore()
    assert core.understand(request("POST", "/v1/charges", form)).wants is None
    status, answer, outcome = post(core, "/v1/charges", form)
    error = answer["error"]
    assert (status, error["type"], error["param"]) == (400, "invalid_request_error", param)
    assert error.get("code") == code
    assert not outcome.effects
    assert get(core, "/v1/charges")["data"] == []


def test_an_intent_moves_money_only_when_it_is_confirmed() -> None:
    """An unconfirmed intent is kept without an effect; its confirmation is a charge."""
    core = PaymentsCore()
    form = {"amount": "500", "currency": "jpy", "metadata[order]": "17"}
    status, intent, outcome = post(core, "/v1/payment_intents", form)
    assert (status, intent["status"]) == (200, "requires_payment_method")
    assert not outcome.effects
    path = f"/v1/payment_intents/{intent['id']}/confirm"
    _, confirmed, outcome = post(core, path, {"payment_method": "pm_card_visa"})
    (effect,) = outcome.effects
    assert (effect.kind, effect.what, effect.ref) == (
        "charge",
        "charge of 500 JPY",
        confirmed["latest_charge"],
    )
    assert (confirmed["status"], confirmed["amount_received"]) == ("succeeded", 500)
    assert get(core, f"/v1/charges/{effect.ref}")["payment_intent"] == intent["id"]


def test_a_payment_is_the_same_fact_whether_confirmed_at_once_or_later() -> None:
    """How the caller goes about it is not part of what happened."""
    core = PaymentsCore()
    form = {"amount": "500", "currency": "eur", "payment_method": "pm_card_visa"}
    _, _, at_once = post(core, "/v1/payment_intents", {**form, "confirm": "true"})
    _, intent, _ = post(core, "/v1/payment_intents", form)
    _, _, later = post(core, f"/v1/payment_intents/{intent['id']}/confirm", {"return_url": "x"})
    assert at_once.effects[0].fields == later.effects[0].fields


def test_an_intent_is_confirmed_once() -> None:
    """The second confirmation is refused, one of an unknown intent too."""
    core = PaymentsCore()
    form = {"amount": "500", "currency": "eur", "confirm": "true"}
    _, intent, _ = post(core, "/v1/payment_intents", form)
    status, answer, outcome = post(core, f"/v1/payment_intents/{intent['id']}/confirm", {})
    assert (status, answer["error"]["code"]) == (400, "payment_intent_unexpected_state")
    assert not outcome.effects
    status, answer, _ = post(core, "/v1/payment_intents/pi_nobody/confirm", {})
    assert (status, answer["error"]["code"]) == (404, "resource_missing")


def test_a_declined_card_is_a_402_without_effect() -> None:
    """The failed charge can be found, but no money has moved."""
    core = PaymentsCore()
    form = {**CHARGE, "source": "tok_chargeDeclinedInsufficientFunds"}
    assert core.understand(request("POST", "/v1/charges", form)).wants is None
    status, answer, outcome = post(core, "/v1/charges", form, TWICE)
    error = answer["error"]
    assert (status, error["type"], error["code"]) == (402, "card_error", "card_declined")
    assert error["decline_code"] == "insufficient_funds"
    assert not outcome.effects
    failed = get(core, f"/v1/charges/{error['charge']}")
    assert (failed["status"], failed["paid"]) == ("failed", False)
    status, _, _ = post(core, "/v1/refunds", {"charge": failed["id"]})
    assert status == 400


def test_an_expired_card_has_a_code_of_its_own() -> None:
    """Not every decline has a decline code."""
    form = {**CHARGE, "source": "tok_chargeDeclinedExpiredCard"}
    status, answer, _ = post(PaymentsCore(), "/v1/charges", form)
    assert (status, answer["error"]["code"]) == (402, "expired_card")
    assert "decline_code" not in answer["error"]


def test_an_empty_metadata_value_is_unset() -> None:
    """The object does not have it, as with Stripe."""
    form = {**CHARGE, "metadata[a]": "", "metadata[b]": "x"}
    _, made, _ = post(PaymentsCore(), "/v1/charges", form)
    assert made["metadata"] == {"b": "x"}


def test_an_intent_without_a_charge_has_nothing_to_refund() -> None:
    """It was never confirmed, so no money can go back."""
    core = PaymentsCore()
    _, intent, _ = post(core, "/v1/payment_intents", {"amount": "5", "currency": "eur"})
    status, answer, outcome = post(core, "/v1/refunds", {"payment_intent": intent["id"]})
    assert (status, answer["error"]["param"]) == (400, "payment_intent")
    assert not outcome.effects


def test_a_declined_intent_can_be_confirmed_with_another_card() -> None:
    """It waits for a card and keeps the reason."""
    core = PaymentsCore()
    form = {"amount": "9", "currency": "eur", "payment_method": "pm_card_chargeDeclined"}
    status, answer, outcome = post(core, "/v1/payment_intents", {**form, "confirm": "true"})
    waiting = answer["error"]["payment_intent"]
    assert (status, waiting["status"]) == (402, "requires_payment_method")
    assert waiting["last_payment_error"]["code"] == "card_declined"
    assert not outcome.effects
    status, answer, _ = post(core, "/v1/refunds", {"payment_intent": waiting["id"]})
    assert status == 400
    path = f"/v1/payment_intents/{waiting['id']}/confirm"
    status, paid, _ = post(core, path, {"payment_method": "pm_card_visa"})
    assert (status, paid["status"], paid["last_payment_error"]) == (200, "succeeded", None)


@given(st.lists(st.none() | st.integers(1, 60), max_size=8))
def test_never_is_more_refunded_than_was_charged(amounts: list[int | None]) -> None:
    """The refunds that were booked add up to what the charge says, and at most to all of it."""
    core = PaymentsCore()
    _, made, _ = post(core, "/v1/charges", {**CHARGE, "amount": "100"})
    booked = 0
    for amount in amounts:
        form = {"charge": made["id"], **({} if amount is None else {"amount": amount})}
        left = 100 - booked
        fits = 0 < (left if amount is None else amount) <= left
        status, answer, outcome = post(core, "/v1/refunds", form)
        assert (status == 200) == fits == bool(outcome.effects)
        booked += answer["amount"] if fits else 0
        now = get(core, f"/v1/charges/{made['id']}")
        assert now["amount_refunded"] == booked
        assert now["refunded"] == (booked == 100)


def test_a_refund_tells_what_it_undoes() -> None:
    """Its effect has its own amount, and the charge in the words of the one who had ordered it."""
    core = PaymentsCore()
    form = {**CHARGE, "metadata[order]": "17", "metadata[customer_name]": "Ann"}
    _, made, _ = post(core, "/v1/charges", form)
    refund = {"charge": made["id"], "amount": "200", "reason": "duplicate", "metadata[why]": "x"}
    wants = core.understand(request("POST", "/v1/refunds", refund)).wants
    _, answer, outcome = post(core, "/v1/refunds", refund)
    (effect,) = outcome.effects
    assert effect.in_words() == "refund of 2.00 EUR to Ann"
    fields = dict(effect.fields)
    assert (fields["amount"], fields["charge"]) == ("200", made["id"])
    assert (fields["of.metadata.order"], fields["metadata.why"]) == ("17", "x")
    assert wants == msgspec.structs.replace(effect, ref="")
    assert (effect.ref, answer["charge"]) == (answer["id"], made["id"])


def test_a_refund_of_an_intent_goes_to_its_charge() -> None:
    """Either id will do; a second whole refund is refused."""
    core = PaymentsCore()
    form = {"amount": "500", "currency": "eur", "confirm": "true"}
    _, intent, _ = post(core, "/v1/payment_intents", form)
    _, refund, _ = post(core, "/v1/refunds", {"payment_intent": intent["id"]})
    assert (refund["charge"], refund["amount"]) == (intent["latest_charge"], 500)
    status, answer, _ = post(core, "/v1/refunds", {"charge": intent["latest_charge"]})
    assert (status, answer["error"]["code"]) == (400, "charge_already_refunded")


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ({}, "parameter_missing"),
        ({"charge": "ch_nobody"}, "resource_missing"),
        ({"payment_intent": "pi_nobody"}, "resource_missing"),
    ],
)
def test_a_refund_of_nothing_is_refused(form: JSON, code: str) -> None:
    """It wants nothing, as it can only be refused."""
    core = PaymentsCore()
    assert core.understand(request("POST", "/v1/refunds", form)).wants is None
    status, answer, _ = post(core, "/v1/refunds", form)
    assert (status, answer["error"]["code"]) == (400, code)
