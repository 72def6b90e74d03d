"""Forty customers in DBOS: each is charged and gets a receipt by mail, one after the other.

An ordinary DBOS program on SQLite. The same command resumes it: `DBOS.launch` recovers what a
killed process left pending, and the workflow has one fixed id, so that it is never begun twice.
Nothing here knows chaoskit; the addresses come from the environment.

``KEYS=1`` sends both services an idempotency key made of the workflow's id and the step's number.
``SPLIT=1`` makes the charge and the mail steps of their own instead of one step that does both.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypedDict

import requests
import stripe
from dbos import DBOS, DBOSConfig, SetWorkflowID

STATE = Path(os.environ.get("CHAOSKIT_STATE_DIR", "."))
EMAIL_URL = os.environ["CHAOSKIT_EMAIL_URL"]
KEYS = os.environ.get("KEYS") == "1"
SPLIT = os.environ.get("SPLIT") == "1"
WORKFLOW = "receipts-1"
CUSTOMERS = 40

payments = stripe.StripeClient(
    "sk_test_shop", base_addresses={"api": os.environ["CHAOSKIT_PAYMENTS_URL"]}
)

config: DBOSConfig = {
    "name": "receipts",
    "system_database_url": f"sqlite:///{STATE.resolve() / 'dbos.sqlite'}",
    "application_version": "1",
}
DBOS(config=config)


class Order(TypedDict):
    """One customer and what is owed."""

    email: str
    cents: int


ORDERS = [Order(email=f"customer{n:02}@example.com", cents=1000 + 37 * n) for n in range(CUSTOMERS)]


def charge(order: Order) -> str:
    """Charge a customer; the payment's id."""
    intent = payments.v1.payment_intents.create(
        {
            "amount": order["cents"],
            "currency": "eur",
            "payment_method": "pm_card_visa",
            "confirm": True,
            "receipt_email": order["email"],
        },
        {"idempotency_key": f"{DBOS.workflow_id}/{DBOS.step_id}/charge"} if KEYS else {},
    )
    return intent.id


def mail(order: Order) -> str:
    """Mail a customer the receipt; the mail's id."""
    answer = requests.post(
        f"{EMAIL_URL}/v1/messages",
        json={
            "from": "shop@example.com",
            "to": order["email"],
            "subject": "Your receipt",
            "text": f"We charged {order['cents'] / 100:.2f} EUR.",
        },
        headers={"Idempotency-Key": f"{DBOS.workflow_id}/{DBOS.step_id}/mail"} if KEYS else {},
        timeout=30,
    )
    answer.raise_for_status()
    return str(answer.json()["id"])


@DBOS.step()
def charge_step(order: Order) -> str:
    """Charge a customer."""
    return charge(order)


@DBOS.step()
def mail_step(order: Order) -> str:
    """Mail the receipt."""
    return mail(order)


@DBOS.step()
def serve_step(order: Order) -> list[str]:
    """Charge a customer and mail the receipt: two effects in one step."""
    return [charge(order), mail(order)]


@DBOS.workflow()
def receipts(orders: list[Order]) -> int:
    """Serve every customer; how many there were."""
    for order in orders:
        if SPLIT:
            charge_step(order)
            mail_step(order)
        else:
            serve_step(order)
    return len(orders)


def main() -> None:
    """Start the workflow, or wait for the one that was recovered."""
    DBOS.launch()
    with SetWorkflowID(WORKFLOW):
        workflow = DBOS.start_workflow(receipts, ORDERS)
    print(f"{workflow.get_result()} customers served")
    DBOS.destroy()


if __name__ == "__main__":
    main()
