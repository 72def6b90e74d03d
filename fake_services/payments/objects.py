"""Stripe's objects, as far as a client reads them: the JSON of an answer as frozen values.

Members are named as in the Stripe API reference. Those that this service never fills are there
with their usual empty value, since clients read them without asking.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from fake_services.payments.forms import Form

Metadata: TypeAlias = Mapping[str, str]


class Card(msgspec.Struct, frozen=True):
    """The card that everybody here pays with: Stripe's test Visa."""

    brand: str = "visa"
    country: str = "US"
    exp_month: int = 12
    exp_year: int = 2034
    fingerprint: str = "chaoskitvisa4242"
    funding: str = "credit"
    last4: str = "4242"
    network: str = "visa"


class PaymentMethodDetails(msgspec.Struct, frozen=True):
    """How a charge was paid."""

    card: Card = Card()
    type: str = "card"


class BillingDetails(msgspec.Struct, frozen=True):
    """Whose card it was; unknown here."""

    address: None = None
    email: None = None
    name: None = None
    phone: None = None


class Declined(msgspec.Struct, frozen=True):
    """Why a card was declined (Stripe docs, Decline codes)."""

    code: str
    decline_code: str | None
    message: str


class Charge(msgspec.Struct, frozen=True, kw_only=True):
    """Money taken, or (``status`` failed) not taken."""

    id: str
    object: Literal["charge"] = "charge"
    amount: int
    amount_captured: int
    amount_refunded: int = 0
    application_fee_amount: int | None = None
    balance_transaction: str | None = None
    billing_details: BillingDetails = BillingDetails()
    captured: bool
    created: int
    currency: str
    customer: str | None = None
    description: str | None = None
    disputed: bool = False
    failure_code: str | None = None
    failure_message: str | None = None
    invoice: str | None = None
    livemode: bool = False
    metadata: Metadata
    outcome: Mapping[str, str]
    paid: bool
    payment_intent: str | None = None
    payment_method: str | None = None
    payment_method_details: PaymentMethodDetails = PaymentMethodDetails()
    receipt_email: str | None = None
    receipt_number: str | None = None
    receipt_url: str | None = None
    refunded: bool = False
    shipping: Form | None = None
    source: str | None = None
    statement_descriptor: str | None = None
    statement_descriptor_suffix: str | None = None
    status: Literal["succeeded", "failed"]
    transfer_group: str | None = None


class PaymentIntent(msgspec.Struct, frozen=True, kw_only=True):
    """A payment from the wish to the charge."""

    id: str
    object: Literal["payment_intent"] = "payment_intent"
    amount: int
    amount_capturable: int = 0
    amount_received: int = 0
    application_fee_amount: int | None = None
    canceled_at: int | None = None
    cancellation_reason: str | None = None
    capture_method: str = "automatic"
    client_secret: str
    confirmation_method: str = "automatic"
    created: int
    currency: str
    customer: str | None = None
    description: str | None = None
    invoice: str | None = None
    last_payment_error: Mapping[str, Any] | None = None
    latest_charge: str | None = None
    livemode: bool = False
    metadata: Metadata
    next_action: None = None
    payment_method: str | None = None
    payment_method_types: tuple[str, ...] = ("card",)
    receipt_email: str | None = None
    setup_future_usage: str | None = None
    shipping: Form | None = None
    statement_descriptor: str | None = None
    statement_descriptor_suffix: str | None = None
    status: Literal["requires_payment_method", "requires_confirmation", "succeeded"]
    transfer_group: str | None = None


class Refund(msgspec.Struct, frozen=True, kw_only=True):
    """Money given back."""

    id: str
    object: Literal["refund"] = "refund"
    amount: int
    balance_transaction: str | None = None
    charge: str
    created: int
    currency: str
    metadata: Metadata
    payment_intent: str | None = None
    reason: str | None = None
    receipt_number: str | None = None
    source_transfer_reversal: str | None = None
    status: Literal["succeeded"] = "succeeded"
    transfer_reversal: str | None = None


class Customer(msgspec.Struct, frozen=True, kw_only=True):
    """Someone who pays."""

    id: str
    object: Literal["customer"] = "customer"
    address: Form | None = None
    balance: int = 0
    created: int
    currency: str | None = None
    default_source: str | None = None
    delinquent: bool = False
    description: str | None = None
    discount: None = None
    email: str | None = None
    invoice_prefix: str | None = None
    livemode: bool = False
    metadata: Metadata
    name: str | None = None
    phone: str | None = None
    preferred_locales: tuple[str, ...] = ()
    shipping: Form | None = None
    tax_exempt: str = "none"
    test_clock: None = None


Thing: TypeAlias = Charge | PaymentIntent | Refund | Customer
"""Whatever has an id and can be listed."""
