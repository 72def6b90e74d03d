"""Which effect an order asks for, in the words of the ledger and the report."""

from __future__ import annotations

from chaoskit.model.effects import Effect, flatten
from chaoskit.model.money import money
from fake_services.payments.forms import Form
from fake_services.payments.objects import Charge
from fake_services.payments.orders import (
    ChargeOrder,
    ConfirmOrder,
    CustomerOrder,
    IntentOrder,
    Order,
    Payment,
    RefundOrder,
    decline_of,
)
from fake_services.payments.world import World

SERVICE = "payments"

TECHNICAL = frozenset(
    {
        "automatic_payment_methods",
        "capture",
        "capture_method",
        "client_secret",
        "confirm",
        "confirmation_method",
        "error_on_requires_action",
        "expand",
        "off_session",
        "payment_method_types",
        "return_url",
        "use_stripe_sdk",
    }
)
"""Parameters that say how Stripe shall go about it, not what shall be: left out of an effect, so
that an intent confirmed at once and one confirmed later are the same business fact."""


def wanted(world: World, order: Order | None, form: Form, key: str | None) -> Effect | None:
    """The effect that ``order`` asks for, without ``ref``.

    None where no money moves and nobody is added, where the card will be declined, and where the
    intent or the charge that it builds on does not exist.
    """
    match order:
        case ChargeOrder(payment):
            return _charge(world, payment, form, key)
        case IntentOrder(payment, confirm=True):
            return _charge(world, payment, form, key)
        case ConfirmOrder(intent) if intent in world.drafts:
            draft = world.drafts[intent].confirmed(order, form)
            return _charge(world, draft.payment, draft.form, key)
        case RefundOrder():
            return _refund(world, order, key)
        case CustomerOrder():
            return _customer(order, form, key)
    return None


def charge_to_refund(world: World, order: RefundOrder) -> Charge | None:
    """The charge whose money shall go back."""
    if order.charge is not None:
        return world.charges.get(order.charge)
    intent = world.intents.get(order.payment_intent)
    return world.charges.get(intent.latest_charge) if intent is not None else None


def amount_to_refund(order: RefundOrder, charge: Charge) -> int:
    """How much of ``charge`` shall go back: what was asked for, or all that is left.

    Where nothing is left, the order can only be an old one asked again: then it meant all of it.
    """
    return order.amount or charge.amount - charge.amount_refunded or charge.amount


def _charge(world: World, payment: Payment, form: Form, key: str | None) -> Effect | None:
    if decline_of(payment.pays_with) is not None:
        return None
    return Effect(
        service=SERVICE,
        kind="charge",
        fields=flatten({k: v for k, v in form.items() if k not in TECHNICAL}),
        who=_payer(world, payment),
        what=f"charge of {money(payment.amount, payment.currency)}",
        key=key,
    )


def _payer(world: World, payment: Payment) -> str:
    customer = world.customers.get(payment.customer)
    return (
        payment.metadata.get("customer_name")
        or (customer.name if customer else None)
        or payment.receipt_email
        or (customer.email if customer else None)
        or payment.description
        or payment.customer
        or ""
    )


def _refund(world: World, order: RefundOrder, key: str | None) -> Effect | None:
    charge = charge_to_refund(world, order)
    booked = world.booked.get(charge.id) if charge is not None else None
    if charge is None or booked is None:
        return None
    amount = amount_to_refund(order, charge)
    fields = {
        "amount": amount,
        "charge": charge.id,
        "currency": charge.currency,
        "metadata": order.metadata,
        "of": dict(booked.fields),
        "reason": order.reason,
    }
    return Effect(
        service=SERVICE,
        kind="refund",
        fields=flatten({name: value for name, value in fields.items() if value is not None}),
        who=booked.who,
        what=f"refund of {money(amount, charge.currency)}",
        key=key,
    )


def _customer(order: CustomerOrder, form: Form, key: str | None) -> Effect:
    return Effect(
        service=SERVICE,
        kind="customer",
        fields=flatten({k: v for k, v in form.items() if k not in TECHNICAL}),
        who=order.name or order.email or order.description or "",
        what="customer account",
        key=key,
    )
