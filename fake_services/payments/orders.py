"""What a POST request orders, once its parameters have passed the checks that need no state.

Amounts and currencies are checked as Stripe checks them, but for the smallest amount of each
currency. What the money comes from is not: the account is taken to know every customer, card and
token that it is not told of, as the world of a real one does not begin with the task. Parameters
that this subset does not know are part of the effect and have no other consequence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from fake_services.payments.errors import invalid, missing
from fake_services.payments.forms import Form, flag_of, form_of, text_of
from fake_services.payments.objects import Declined, Metadata

AMOUNT_MAX = 99_999_999
"""Eight digits, in the smallest unit (Stripe API reference, Charges, ``amount``)."""

_DIGITS_MAX = 18
_CURRENCY = re.compile(r"[A-Za-z]{3}")
_DECLINED = re.compile(r"(?:tok|pm_card)_(?:visa_)?chargeDeclined(\w*)")

_DECLINES: Mapping[str, Declined] = {
    "": Declined("card_declined", "generic_decline", "Your card was declined."),
    "InsufficientFunds": Declined(
        "card_declined", "insufficient_funds", "Your card has insufficient funds."
    ),
    "ExpiredCard": Declined("expired_card", None, "Your card has expired."),
    "IncorrectCvc": Declined("incorrect_cvc", None, "Your card's security code is incorrect."),
    "ProcessingError": Declined(
        "processing_error", None, "An error occurred while processing your card. Try again later."
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """Money to take. ``amount`` is in the smallest unit of ``currency``, which is lower case."""

    amount: int
    currency: str
    metadata: Metadata
    customer: str | None = None
    description: str | None = None
    receipt_email: str | None = None
    pays_with: str | None = None
    shipping: Form | None = None
    statement_descriptor: str | None = None
    statement_descriptor_suffix: str | None = None
    transfer_group: str | None = None


@dataclass(frozen=True, slots=True)
class ChargeOrder:
    """Take the money now."""

    payment: Payment


@dataclass(frozen=True, slots=True)
class IntentOrder:
    """Keep a payment intent, and take the money at once if it comes with ``confirm=true``."""

    payment: Payment
    confirm: bool


@dataclass(frozen=True, slots=True)
class ConfirmOrder:
    """Take the money of the intent with this id."""

    intent: str
    pays_with: str | None
    receipt_email: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundOrder:
    """Give money back: ``amount`` of it, or (None) all that is left of the charge."""

    charge: str | None
    payment_intent: str | None
    amount: int | None
    reason: str | None
    metadata: Metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerOrder:
    """Remember a customer."""

    name: str | None
    email: str | None
    phone: str | None
    description: str | None
    address: Form | None
    shipping: Form | None
    metadata: Metadata


Order: TypeAlias = ChargeOrder | IntentOrder | ConfirmOrder | RefundOrder | CustomerOrder


def read_order(operation: str, target: str, form: Form) -> Order | None:
    """The order in ``form``; None where the operation only looks.

    Args:
        operation: as in `chaoskit.model.events.RequestReceived`.
        target: the id in the path, if there is one.
        form: the decoded parameters.

    Raises:
        RefusedError: a parameter is missing or ill-formed.
    """
    match operation:
        case "charge":
            return ChargeOrder(_payment(form, "source", "payment_method"))
        case "payment_intent":
            return IntentOrder(_payment(form, "payment_method"), flag_of(form, "confirm"))
        case "confirm":
            return ConfirmOrder(
                target, text_of(form, "payment_method"), text_of(form, "receipt_email")
            )
        case "refund":
            return _refund(form)
        case "customer":
            return _customer(form)
    return None


def decline_of(pays_with: str | None) -> Declined | None:
    """Why a card is declined, for the tokens that ask for it (Stripe docs, Testing)."""
    found = _DECLINED.fullmatch(pays_with) if pays_with else None
    return _DECLINES.get(found[1], _DECLINES[""]) if found else None


def whole_number(form: Form, name: str) -> int | None:
    """The integer under ``name``; None where it is absent.

    Raises:
        RefusedError: it is not an integer.
    """
    value = text_of(form, name)
    if value is None:
        return None
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX):
        raise invalid(f"Invalid integer: {value}", param=name, code="parameter_invalid_integer")
    return int(value)


def _payment(form: Form, *means: str) -> Payment:
    amount = _amount(form)
    if amount is None:
        raise _absent(form, "amount")
    return Payment(
        amount=amount,
        currency=_currency(form),
        metadata=_metadata(form),
        customer=text_of(form, "customer"),
        description=text_of(form, "description"),
        receipt_email=text_of(form, "receipt_email"),
        pays_with=_means(form, means),
        shipping=form_of(form, "shipping") or None,
        statement_descriptor=text_of(form, "statement_descriptor"),
        statement_descriptor_suffix=text_of(form, "statement_descriptor_suffix"),
        transfer_group=text_of(form, "transfer_group"),
    )


def _refund(form: Form) -> RefundOrder:
    charge, intent = text_of(form, "charge"), text_of(form, "payment_intent")
    if charge is None and intent is None:
        raise invalid(
            "One of the following params should be provided for this request: payment_intent or "
            "charge.",
            code="parameter_missing",
        )
    return RefundOrder(
        charge=charge,
        payment_intent=intent,
        amount=_amount(form),
        reason=text_of(form, "reason"),
        metadata=_metadata(form),
    )


def _customer(form: Form) -> CustomerOrder:
    return CustomerOrder(
        name=text_of(form, "name"),
        email=text_of(form, "email"),
        phone=text_of(form, "phone"),
        description=text_of(form, "description"),
        address=form_of(form, "address") or None,
        shipping=form_of(form, "shipping") or None,
        metadata=_metadata(form),
    )


def _amount(form: Form) -> int | None:
    amount = whole_number(form, "amount")
    if amount is None:
        return None
    if amount < 1:
        raise invalid(
            "This value must be greater than or equal to 1.",
            param="amount",
            code="parameter_invalid_integer",
        )
    if amount > AMOUNT_MAX:
        raise invalid(
            f"Amount must be no more than {AMOUNT_MAX}.", param="amount", code="amount_too_large"
        )
    return amount


def _currency(form: Form) -> str:
    currency = text_of(form, "currency")
    if currency is None:
        raise _absent(form, "currency")
    if not _CURRENCY.fullmatch(currency):
        raise invalid(
            f"Invalid currency: {currency}. A currency is a three-letter ISO code.",
            param="currency",
        )
    return currency.lower()


def _means(form: Form, names: tuple[str, ...]) -> str | None:
    if text_of(form, "capture") == "false" or text_of(form, "capture_method") == "manual":
        raise invalid(
            "This service takes the money at once; it has no manual capture.",
            param="capture" if "capture" in form else "capture_method",
        )
    given = (form.get(name) for name in names)
    return next((value for value in given if value and isinstance(value, str)), None)


def _metadata(form: Form) -> Metadata:
    values = form.get("metadata")
    if not values:
        return {}
    metadata = {}
    for name, value in form_of(form, "metadata").items():
        if not isinstance(value, str):
            raise invalid("Metadata values must be strings.", param=f"metadata[{name}]")
        if value:
            metadata[name] = value
    return metadata


def _absent(form: Form, name: str) -> Exception:
    if name not in form:
        return missing(name)
    return invalid(
        f"You passed an empty string for '{name}'. We assume empty values are an attempt to unset "
        f"a field; however '{name}' cannot be unset. You should remove '{name}' from your request "
        "or supply a non-empty value.",
        param=name,
        code="parameter_invalid_empty",
    )
