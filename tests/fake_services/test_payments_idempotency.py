"""Idempotency keys: Stripe's rules, example by example and against a small model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from hypothesis import given
from hypothesis import strategies as st

from fake_services.core import Circumstances, HttpRequest, Outcome
from fake_services.payments.core import PaymentsCore

HOUR_S = 3600.0
CHARGE = {"amount": "4200", "currency": "eur", "source": "tok_visa"}
NOW = Circumstances(now_s=1_700_000_000.0)


def post(
    core: PaymentsCore,
    form: Mapping[str, str],
    key: str | None,
    when: Circumstances = NOW,
    path: str = "/v1/charges",
) -> Outcome:
    """One POST request, as the host would hand it over."""
    headers = {"authorization": "Bearer sk_test_1"}
    if key is not None:
        headers["idempotency-key"] = key
    request = HttpRequest("POST", path, "", headers, urlencode(form).encode())
    return core.apply(request, core.understand(request), when)


def error_of(outcome: Outcome) -> dict[str, Any]:
    """The error in an answer."""
    error: dict[str, Any] = json.loads(outcome.reply.body)["error"]
    return error


def later(seconds: float) -> Circumstances:
    """The same circumstances, ``seconds`` later."""
    return Circumstances(now_s=NOW.now_s + seconds)


def test_the_same_request_again_gets_the_same_answer_and_no_effect() -> None:
    """Status and body are repeated, a header says so, and nothing is charged."""
    core = PaymentsCore()
    first, second = post(core, CHARGE, "k"), post(core, CHARGE, "k", later(1))
    assert (second.reply.status, second.reply.body) == (first.reply.status, first.reply.body)
    assert second.reply.headers["idempotent-replayed"] == "true"
    assert second.reply.headers["original-request"] == first.reply.headers["request-id"]
    assert second.reply.headers["request-id"] != first.reply.headers["request-id"]
    assert (first.deduped, second.deduped) == (False, True)
    assert (len(first.effects), len(second.effects)) == (1, 0)


def test_parameters_are_compared_not_bytes() -> None:
    """The order of the parameters does not matter."""
    core = PaymentsCore()
    post(core, CHARGE, "k")
    assert post(core, dict(reversed(CHARGE.items())), "k").deduped


def test_other_parameters_under_the_same_key_are_an_error() -> None:
    """A key belongs to the parameters that it was first used with."""
    core = PaymentsCore()
    post(core, CHARGE, "k")
    outcome = post(core, {**CHARGE, "amount": "4300"}, "k")
    assert outcome.reply.status == 400
    assert error_of(outcome)["type"] == "idempotency_error"
    assert "same parameters" in error_of(outcome)["message"]
    assert not outcome.effects


def test_another_endpoint_under_the_same_key_is_an_error() -> None:
    """A key belongs to the endpoint that it was first used with."""
    core = PaymentsCore()
    post(core, CHARGE, "k")
    outcome = post(core, CHARGE, "k", path="/v1/payment_intents")
    assert error_of(outcome)["type"] == "idempotency_error"
    assert "'/v1/payment_intents' vs '/v1/charges'" in error_of(outcome)["message"]


def test_a_key_in_flight_is_a_conflict() -> None:
    """While the first request has not been answered, a second one is turned away."""
    core = PaymentsCore()
    outcome = post(core, CHARGE, "k", Circumstances(now_s=NOW.now_s, in_flight=True))
    assert outcome.reply.status == 409
    assert error_of(outcome)["code"] == "idempotency_key_in_use"
    assert not outcome.effects
    assert post(core, CHARGE, "k").effects


def test_a_request_without_a_key_is_never_in_flight() -> None:
    """Only keys can be in use."""
    assert post(PaymentsCore(), CHARGE, None, Circumstances(now_s=0.0, in_flight=True)).effects


def test_a_key_is_forgotten_after_24_hours() -> None:
    """One second before, the answer is repeated; then the money is taken again."""
    core = PaymentsCore()
    post(core, CHARGE, "k")
    assert post(core, CHARGE, "k", later(24 * HOUR_S - 1)).deduped
    assert len(post(core, CHARGE, "k", later(24 * HOUR_S)).effects) == 1
    assert post(core, CHARGE, "k", later(47 * HOUR_S)).deduped


def test_a_failed_validation_leaves_the_key_free() -> None:
    """What was never executed is not kept."""
    core = PaymentsCore()
    assert post(core, {"amount": "-5"}, "k").reply.status == 400
    assert post(core, CHARGE, "k").effects


def test_a_declined_card_is_kept_under_the_key() -> None:
    """The execution had begun, so the refusal is repeated."""
    core = PaymentsCore()
    declined = {**CHARGE, "source": "tok_chargeDeclined"}
    assert post(core, declined, "k").reply.status == 402
    again = post(core, declined, "k")
    assert (again.reply.status, again.deduped) == (402, True)


def test_a_refund_refused_for_the_state_is_kept_under_the_key() -> None:
    """The state was looked at, so the execution had begun."""
    core = PaymentsCore()
    refund = {"charge": "ch_nobody"}
    assert post(core, refund, "k", path="/v1/refunds").reply.status == 400
    assert post(core, refund, "k", path="/v1/refunds").deduped


def test_a_request_without_api_key_leaves_the_key_free() -> None:
    """Whoever is not let in uses up nothing."""
    core = PaymentsCore()
    headers = {"idempotency-key": "k"}
    request = HttpRequest("POST", "/v1/charges", "", headers, urlencode(CHARGE).encode())
    assert core.apply(request, core.understand(request), NOW).reply.status == 401
    assert post(core, CHARGE, "k").effects


def test_a_key_has_at_most_255_characters() -> None:
    """A longer one is refused, and nothing happens."""
    core = PaymentsCore()
    assert post(core, CHARGE, "k" * 255).effects
    outcome = post(core, CHARGE, "k" * 256)
    assert (outcome.reply.status, outcome.effects) == (400, ())


def test_forgotten_keys_are_neither_read_nor_kept() -> None:
    """The behaviour makes a request one without a key; the ledger still knows the key."""
    core = PaymentsCore()
    forget = Circumstances(now_s=NOW.now_s, forget_keys=True)
    assert post(core, CHARGE, "k", forget).effects[0].key == "k"
    assert post(core, CHARGE, "k").effects
    assert post(core, CHARGE, "k", forget).effects


def test_keys_do_not_outlive_the_world() -> None:
    """A reset forgets every key."""
    core = PaymentsCore()
    post(core, CHARGE, "k")
    core.reset(1)
    assert post(core, CHARGE, "k").effects


@dataclass(frozen=True)
class Step:
    """One request of a random history. ``pause_h`` are the hours before it."""

    key: str | None
    amount: str
    path: str
    pause_h: int
    in_flight: bool
    forget: bool


STEPS = st.lists(
    st.builds(
        Step,
        key=st.sampled_from([None, "a", "b"]),
        amount=st.sampled_from(["100", "200", "none"]),
        path=st.sampled_from(["/v1/charges", "/v1/payment_intents"]),
        pause_h=st.sampled_from([0, 0, 0, 5, 23, 24]),
        in_flight=st.integers(0, 9).map(lambda n: n == 0),
        forget=st.integers(0, 9).map(lambda n: n == 0),
    ),
    max_size=25,
)


class Model:
    """The rules once more, in the shortest form: what an answer must be, and what is kept."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[float, Step, bytes]] = {}

    def expect(self, step: Step, now_s: float) -> str:
        """``new``, ``invalid``, ``conflict``, ``mismatch`` or ``replay``."""
        if step.key is not None and not step.forget:
            if step.in_flight:
                return "conflict"
            first_s, first, _ = self.kept.get(step.key, (float("-inf"), step, b""))
            if now_s - first_s < 24 * HOUR_S:
                same = (first.path, first.amount) == (step.path, step.amount)
                return "replay" if same else "mismatch"
        return "invalid" if step.amount == "none" else "new"


@given(STEPS)
def test_any_history_of_requests_obeys_the_model(steps: list[Step]) -> None:
    """Each answer is the one that the rules give, and only new requests have effects."""
    core, model, now_s = PaymentsCore(), Model(), NOW.now_s
    status = {"new": 200, "replay": 200, "invalid": 400, "mismatch": 400, "conflict": 409}
    for step in steps:
        now_s += step.pause_h * HOUR_S
        when = Circumstances(now_s=now_s, in_flight=step.in_flight, forget_keys=step.forget)
        form = {"amount": step.amount, "currency": "eur", "confirm": "true"}
        expected = model.expect(step, now_s)
        outcome = post(core, form, step.key, when, step.path)
        assert outcome.reply.status == status[expected]
        assert len(outcome.effects) == (1 if expected == "new" else 0)
        assert outcome.deduped == (expected == "replay")
        if expected == "replay" and step.key is not None:
            assert outcome.reply.body == model.kept[step.key][2]
        if expected == "mismatch":
            assert error_of(outcome)["type"] == "idempotency_error"
        if expected == "new" and step.key is not None and not step.forget:
            model.kept[step.key] = (now_s, step, outcome.reply.body)
