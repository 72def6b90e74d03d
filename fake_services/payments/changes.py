"""Carrying out an order: the only code that changes the account's state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from chaoskit.model.effects import Effect
from chaoskit.model.money import money
from fake_services.payments.errors import Refusal, RefusedError, invalid, no_such
from fake_services.payments.forms import Form
from fake_services.payments.objects import (
    Charge,
    Customer,
    Declined,
    PaymentIntent,
    Refund,
    Thing,
)
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
from fake_services.payments.wishes import amount_to_refund, charge_to_refund
from fake_services.payments.world import Draft, World


@dataclass(frozen=True, slots=True)
class Done:
    """What came of an order."""

    thing: Thing
    effects: Sequence[Effect] = ()


@dataclass(frozen=True, slots=True)
class Ordered:
    """An order with what came along.

    ``wants`` is the effect that it asks for as the account stands now, ``created`` the time in
    seconds since the epoch.
    """

    order: Order
    form: Form
    wants: Effect | None
    created: int


def carry_out(world: World, ordered: Ordered) -> Done:
    """Do what is ordered.

    Raises:
        RefusedError: the state of the account forbids it, or the card is declined. A declined
            card leaves a failed charge behind, as with Stripe.
    """
    match ordered.order:
        case ChargeOrder(payment):
            charge = _take(world, payment, ordered)
            return Done(charge, _booked(world, ordered, charge))
        case IntentOrder():
            return _new_intent(world, ordered.order, ordered)
        case ConfirmOrder():
            return _confirm(world, ordered.order, ordered)
        case RefundOrder():
            return _refund(world, ordered.order, ordered)
        case CustomerOrder():
            return _customer(world, ordered.order, ordered)


def _take(
    world: World, payment: Payment, ordered: Ordered, intent: PaymentIntent | None = None
) -> Charge:
    """A charge that has succeeded.

    Raises:
        RefusedError: the card is declined.
    """
    declined = decline_of(payment.pays_with)
    ref = intent.id if intent is not None else None
    charge = world.charges.put(
        _new_charge(world.new_id("charge"), payment, ordered.created, ref, declined)
    )
    if declined is not None:
        raise _card_error(world, charge, declined, intent)
    return charge


def _card_error(
    world: World, charge: Charge, declined: Declined, intent: PaymentIntent | None
) -> RefusedError:
    """The error of a failed charge; its intent goes back to waiting for a card."""
    more: dict[str, Any] = {"charge": charge.id}
    if declined.decline_code is not None:
        more["decline_code"] = declined.decline_code
    if intent is not None:
        waiting = msgspec.structs.replace(
            intent,
            latest_charge=charge.id,
            status="requires_payment_method",
            last_payment_error={"code": declined.code, "message": declined.message, **more},
        )
        more["payment_intent"] = world.intents.put(waiting)
    return RefusedError(
        Refusal(
            status=402, kind="card_error", message=declined.message, code=declined.code, more=more
        )
    )


def _booked(world: World, ordered: Ordered, charge: Charge) -> Sequence[Effect]:
    booked = _with_ref(ordered.wants, charge.id)
    for effect in booked:
        world.booked[charge.id] = effect
    return booked


def _with_ref(wants: Effect | None, ref: str) -> Sequence[Effect]:
    return () if wants is None else (msgspec.structs.replace(wants, ref=ref),)


def _new_charge(
    ref: str, payment: Payment, created: int, intent: str | None, declined: Declined | None
) -> Charge:
    taken = declined is None
    return Charge(
        id=ref,
        amount=payment.amount,
        amount_captured=payment.amount if taken else 0,
        captured=taken,
        created=created,
        currency=payment.currency,
        customer=payment.customer,
        description=payment.description,
        failure_code=declined.code if declined else None,
        failure_message=declined.message if declined else None,
        metadata=payment.metadata,
        outcome=_outcome(declined),
        paid=taken,
        payment_intent=intent,
        payment_method=payment.pays_with,
        receipt_email=payment.receipt_email,
        shipping=payment.shipping,
        statement_descriptor=payment.statement_descriptor,
        statement_descriptor_suffix=payment.statement_descriptor_suffix,
        status="succeeded" if taken else "failed",
        transfer_group=payment.transfer_group,
    )


def _outcome(declined: Declined | None) -> dict[str, str]:
    if declined is None:
        return {"network_status": "approved_by_network", "type": "authorized"}
    return {
        "network_status": "declined_by_network",
        "reason": declined.decline_code or declined.code,
        "type": "issuer_declined",
    }


def _new_intent(world: World, order: IntentOrder, ordered: Ordered) -> Done:
    payment, ref = order.payment, world.new_id("payment_intent")
    intent = world.intents.put(
        PaymentIntent(
            id=ref,
            amount=payment.amount,
            client_secret=f"{ref}_secret_{world.new_id('secret')}",
            created=ordered.created,
            currency=payment.currency,
            customer=payment.customer,
            description=payment.description,
            metadata=payment.metadata,
            payment_method=payment.pays_with,
            receipt_email=payment.receipt_email,
            shipping=payment.shipping,
            statement_descriptor=payment.statement_descriptor,
            statement_descriptor_suffix=payment.statement_descriptor_suffix,
            status="requires_confirmation" if payment.pays_with else "requires_payment_method",
            transfer_group=payment.transfer_group,
        )
    )
    draft = world.drafts[ref] = Draft(payment, ordered.form)
    return _settle(world, intent, draft, ordered) if order.confirm else Done(intent)


def _confirm(world: World, order: ConfirmOrder, ordered: Ordered) -> Done:
    intent = world.intents.get(order.intent)
    if intent is None:
        raise no_such("payment_intent", order.intent, param="intent", status=404)
    if intent.status == "succeeded":
        raise invalid(
            "You cannot confirm this PaymentIntent because it has already succeeded after being "
            "previously confirmed.",
            code="payment_intent_unexpected_state",
        )
    draft = world.drafts[intent.id].confirmed(order, ordered.form)
    return _settle(world, intent, draft, ordered)


def _settle(world: World, intent: PaymentIntent, draft: Draft, ordered: Ordered) -> Done:
    charge = _take(world, draft.payment, ordered, intent)
    settled = msgspec.structs.replace(
        intent,
        amount_received=charge.amount,
        last_payment_error=None,
        latest_charge=charge.id,
        payment_method=draft.payment.pays_with,
        receipt_email=draft.payment.receipt_email,
        status="succeeded",
    )
    return Done(world.intents.put(settled), _booked(world, ordered, charge))


def _refund(world: World, order: RefundOrder, ordered: Ordered) -> Done:
    charge = _refundable(world, order)
    amount = amount_to_refund(order, charge)
    refund = Refund(
        id=world.new_id("refund"),
        amount=amount,
        charge=charge.id,
        created=ordered.created,
        currency=charge.currency,
        metadata=order.metadata,
        payment_intent=charge.payment_intent,
        reason=order.reason,
    )
    given_back = charge.amount_refunded + amount
    world.charges.put(
        msgspec.structs.replace(
            charge, amount_refunded=given_back, refunded=given_back == charge.amount
        )
    )
    return Done(world.refunds.put(refund), _with_ref(ordered.wants, refund.id))


def _refundable(world: World, order: RefundOrder) -> Charge:
    """The charge, if there is as much left of it as shall go back."""
    charge = charge_to_refund(world, order)
    if charge is None and order.charge is not None:
        raise no_such("charge", order.charge, param="charge")
    if charge is None:
        if world.intents.get(order.payment_intent) is not None:
            raise invalid(
                f"This PaymentIntent ({order.payment_intent}) does not have a successful charge to "
                "refund.",
                param="payment_intent",
            )
        raise no_such("payment_intent", order.payment_intent or "", param="payment_intent")
    left = charge.amount_captured - charge.amount_refunded
    if charge.status == "failed":
        raise invalid(f"Charge {charge.id} has failed; there is nothing to refund.", param="charge")
    if not left:
        raise invalid(
            f"Charge {charge.id} has already been refunded.", code="charge_already_refunded"
        )
    if order.amount is not None and order.amount > left:
        raise invalid(
            f"Refund amount ({money(order.amount, charge.currency)}) is greater than unrefunded "
            f"amount on charge ({money(left, charge.currency)})",
            param="amount",
        )
    return charge


def _customer(world: World, order: CustomerOrder, ordered: Ordered) -> Done:
    customer = world.customers.put(
        Customer(
            id=world.new_id("customer"),
            address=order.address,
            created=ordered.created,
            description=order.description,
            email=order.email,
            metadata=order.metadata,
            name=order.name,
            phone=order.phone,
            shipping=order.shipping,
        )
    )
    return Done(customer, _with_ref(ordered.wants, customer.id))
