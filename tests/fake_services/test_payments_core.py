"""The payments core as a service: who is let in, what every answer has, and the behaviours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_services.core import Call, HttpRequest
from fake_services.payments.core import PaymentsCore
from tests.fake_services.asking import CHARGE, JSON, NOW, TWICE, post, request, send


def get(core: PaymentsCore, path: str, form: Mapping[str, object] | None = None) -> JSON:
    """JSON of a GET."""
    answer: JSON = json.loads(send(core, request("GET", path, form)).reply.body)
    return answer


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/v1/charges", CHARGE),
        ("/v1/payment_intents", {"amount": "5", "currency": "eur", "confirm": "true"}),
        ("/v1/customers", {"name": "Ann"}),
    ],
)
def test_apply_twice_books_two_effects_with_two_refs(path: str, form: JSON) -> None:
    """Both are really there; the answer tells of the first."""
    core = PaymentsCore()
    _, answer, outcome = post(core, path, form, TWICE)
    first, second = outcome.effects
    assert first.ref != second.ref
    assert msgspec.structs.replace(second, ref=first.ref) == first
    assert first.ref in {answer["id"], answer.get("latest_charge")}
    sort = {"charge": "charges", "customer": "customers"}[first.kind]
    listed = get(core, f"/v1/{sort}")["data"]
    assert [item["id"] for item in listed] == [second.ref, first.ref]


def test_apply_twice_refunds_twice() -> None:
    """A refund can be doubled too."""
    core = PaymentsCore()
    _, made, _ = post(core, "/v1/charges", CHARGE)
    _, _, outcome = post(core, "/v1/refunds", {"charge": made["id"]}, TWICE)
    assert [effect.kind for effect in outcome.effects] == ["refund", "refund"]
    assert len(get(core, "/v1/refunds", {"charge": made["id"]})["data"]) == 2


def test_equal_seeds_give_equal_ids_and_other_seeds_others() -> None:
    """Ids come from the seed and the count alone."""

    def ids(seed: int) -> list[str]:
        core = PaymentsCore()
        core.reset(seed)
        return [post(core, "/v1/charges", CHARGE)[1]["id"] for _ in range(3)]

    assert ids(7) == ids(7)
    assert len({*ids(7), *ids(8)}) == 6
    assert all(ref.startswith("ch_") and len(ref) == 27 for ref in ids(7))


def test_a_reset_empties_the_account() -> None:
    """Nothing of the old world can be found in the new one."""
    core = PaymentsCore()
    _, made, _ = post(core, "/v1/charges", CHARGE)
    core.reset(1)
    assert "error" in get(core, f"/v1/charges/{made['id']}")
    assert get(core, "/v1/balance")["available"] == []


def test_without_an_api_key_nothing_is_done() -> None:
    """The answer is Stripe's 401; the key may come as bearer or as basic authentication."""
    core = PaymentsCore()
    body = urlencode(CHARGE).encode()
    for authorization, status in (
        ("", 401),
        ("Bearer ", 401),
        ("Bearer k", 200),
        ("Basic az", 200),
    ):
        headers = {"authorization": authorization}
        asked = HttpRequest("POST", "/v1/charges", "", headers, body)
        assert send(core, asked).reply.status == status


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/v1/charge"),
        ("GET", "/v1/charges/"),
        ("DELETE", "/v1/charges"),
        ("POST", "/v1/charges/ch_1/capture"),
        ("POST", "/v1/payment_intents//confirm"),
        ("GET", "/v1/refunds/search/x"),
    ],
)
def test_an_unknown_route_is_stripes_404(method: str, path: str) -> None:
    """It is an operation too: ``unknown``."""
    core = PaymentsCore()
    asked = request(method, path)
    assert core.understand(asked).operation == "unknown"
    reply = send(core, asked).reply
    assert (reply.status, json.loads(reply.body)["error"]["type"]) == (
        404,
        "invalid_request_error",
    )


def test_a_json_body_is_refused_with_a_hint() -> None:
    """Stripe takes forms only, and says so."""
    asked = request("POST", "/v1/charges", CHARGE, content_type="application/json; charset=utf-8")
    reply = send(PaymentsCore(), asked).reply
    assert reply.status == 400
    assert b"application/x-www-form-urlencoded" in reply.body


def test_every_answer_has_a_request_id_and_echoes_the_version() -> None:
    """Clients log the one and rely on the other."""
    core = PaymentsCore()
    first = send(core, request("GET", "/v1/balance", stripe_version="2025-03-31.basil")).reply
    second = send(core, request("GET", "/v1/nothing")).reply
    assert first.headers["stripe-version"] == "2025-03-31.basil"
    assert first.headers["request-id"].startswith("req_")
    assert first.headers["request-id"] != second.headers["request-id"]
    assert "stripe-version" not in second.headers


def test_ids_are_expanded_where_they_name_something_stored() -> None:
    """Members of members and of the items of a list can be expanded; strangers stay ids."""
    core = PaymentsCore()
    _, ann, _ = post(core, "/v1/customers", {"name": "Ann"})
    form = {"amount": "5", "currency": "eur", "confirm": "true", "customer": ann["id"]}
    paths = {"expand[0]": "latest_charge.payment_intent", "expand[1]": "customer"}
    _, intent, _ = post(core, "/v1/payment_intents", {**form, **paths})
    assert intent["customer"]["name"] == "Ann"
    assert intent["latest_charge"]["payment_intent"]["id"] == intent["id"]
    post(core, "/v1/charges", {**CHARGE, "customer": "cus_elsewhere"})
    listed = get(core, "/v1/charges", {"expand[]": "data.customer"})["data"]
    assert listed[0]["customer"] == "cus_elsewhere"
    assert listed[1]["customer"]["name"] == "Ann"
    _, refund, _ = post(core, "/v1/refunds", {"charge": listed[1]["id"], "expand[]": "charge.id.x"})
    assert refund["charge"]["customer"] == ann["id"]


def test_the_balance_is_what_was_taken_and_not_given_back() -> None:
    """Per currency, without the failed charges."""
    core = PaymentsCore()
    _, made, _ = post(core, "/v1/charges", CHARGE)
    post(core, "/v1/charges", {**CHARGE, "currency": "jpy"})
    post(core, "/v1/charges", {**CHARGE, "source": "tok_chargeDeclined"})
    post(core, "/v1/refunds", {"charge": made["id"], "amount": "200"})
    available = get(core, "/v1/balance")["available"]
    assert [(each["currency"], each["amount"]) for each in available] == [
        ("eur", 4000),
        ("jpy", 4200),
    ]


def test_a_call_of_another_making_is_understood_again() -> None:
    """The core takes any `Call`, such as one that a wrapper has rebuilt."""
    core = PaymentsCore()
    asked = request("POST", "/v1/charges", CHARGE)
    assert core.apply(asked, Call(operation="charge"), NOW).effects


PATHS = st.sampled_from(
    [
        "/v1/charges",
        "/v1/charges/search",
        "/v1/charges/ch_1",
        "/v1/payment_intents",
        "/v1/payment_intents/pi_1/confirm",
        "/v1/refunds",
        "/v1/customers",
        "/v1/balance",
    ]
) | st.text(max_size=30)
BODIES = st.binary(max_size=200) | st.lists(
    st.tuples(
        st.sampled_from(["amount", "currency", "metadata[a]", "metadata", "expand[]", "confirm"]),
        st.sampled_from(["5", "eur", "true", "\0", "é", ""]),
    )
).map(lambda pairs: urlencode(pairs).encode())


@given(
    st.sampled_from(["GET", "POST", "PUT"]),
    PATHS,
    st.binary(max_size=80).map(lambda raw: raw.decode("latin-1")),
    BODIES,
    st.none() | st.binary(min_size=1, max_size=300).map(lambda raw: raw.decode("latin-1")),
)
def test_no_bytes_make_it_raise(
    method: str, path: str, query: str, body: bytes, key: str | None
) -> None:
    """Any request is an operation of the list, and its answer is JSON with plain headers."""
    core = PaymentsCore()
    headers = {"authorization": "Bearer k", **({} if key is None else {"idempotency-key": key})}
    asked = HttpRequest(method, path, query, headers, body)
    understood = core.understand(asked)
    outcome = core.apply(asked, understood, NOW)
    assert understood.operation in core.operations
    assert 200 <= outcome.reply.status < 500
    assert isinstance(json.loads(outcome.reply.body), dict)
    assert all(value.isascii() for value in outcome.reply.headers.values())
    assert [msgspec.structs.replace(e, ref="") for e in outcome.effects] in (
        [],
        [understood.wants],
    )
