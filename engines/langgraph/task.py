"""Forty customers in LangGraph: each is charged and gets a receipt by mail, one after the other.

An ordinary LangGraph program: a `StateGraph` that loops, a `SqliteSaver`, ``durability="sync"``.
The same command resumes it, because the thread has one fixed id. Nothing here knows chaoskit; the
addresses come from the environment.

``KEYS=1`` sends both services an idempotency key made of the thread's id and the step's number.
``SPLIT=1`` makes the charge and the mail nodes of their own instead of one node that does both.
``DURABILITY`` is LangGraph's own word: ``sync`` here, ``async`` in LangGraph itself.
"""

from __future__ import annotations

import operator
import os
from pathlib import Path
from typing import Annotated, Literal, TypedDict, cast

import requests
import stripe
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Durability

STATE = Path(os.environ.get("CHAOSKIT_STATE_DIR", "."))
EMAIL_URL = os.environ["CHAOSKIT_EMAIL_URL"]
KEYS = os.environ.get("KEYS") == "1"
SPLIT = os.environ.get("SPLIT") == "1"
DURABILITY = cast("Durability", os.environ.get("DURABILITY", "sync"))
THREAD = "receipts-1"
CUSTOMERS = 40

payments = stripe.StripeClient(
    "sk_test_shop", base_addresses={"api": os.environ["CHAOSKIT_PAYMENTS_URL"]}
)


class Order(TypedDict):
    """One customer and what is owed."""

    email: str
    cents: int


ORDERS = [Order(email=f"customer{n:02}@example.com", cents=1000 + 37 * n) for n in range(CUSTOMERS)]


def charge(order: Order, step: str) -> str:
    """Charge a customer; the payment's id."""
    intent = payments.v1.payment_intents.create(
        {
            "amount": order["cents"],
            "currency": "eur",
            "payment_method": "pm_card_visa",
            "confirm": True,
            "receipt_email": order["email"],
        },
        {"idempotency_key": f"{step}/charge"} if KEYS else {},
    )
    return intent.id


def mail(order: Order, step: str) -> str:
    """Mail a customer the receipt; the mail's id."""
    answer = requests.post(
        f"{EMAIL_URL}/v1/messages",
        json={
            "from": "shop@example.com",
            "to": order["email"],
            "subject": "Your receipt",
            "text": f"We charged {order['cents'] / 100:.2f} EUR.",
        },
        headers={"Idempotency-Key": f"{step}/mail"} if KEYS else {},
        timeout=30,
    )
    answer.raise_for_status()
    return str(answer.json()["id"])


class State(TypedDict):
    """What LangGraph keeps in its checkpoints."""

    orders: list[Order]
    charges: Annotated[list[str], operator.add]
    mails: Annotated[list[str], operator.add]


def charge_node(state: State) -> dict[str, list[str]]:
    """Charge the next customer."""
    number = len(state["charges"])
    return {"charges": [charge(state["orders"][number], f"{THREAD}/{number}")]}


def mail_node(state: State) -> dict[str, list[str]]:
    """Mail the receipt of the next customer."""
    number = len(state["mails"])
    return {"mails": [mail(state["orders"][number], f"{THREAD}/{number}")]}


def serve_node(state: State) -> dict[str, list[str]]:
    """Charge the next customer and mail the receipt: two effects in one step."""
    return charge_node(state) | mail_node(state)


def more(state: State) -> Literal["more", "done"]:
    """Whether a customer is left."""
    return "more" if len(state["mails"]) < len(state["orders"]) else "done"


def build() -> StateGraph[State]:
    """A loop of one node, or of two."""
    graph = StateGraph(State)
    if SPLIT:
        graph.add_node("charge", charge_node)
        graph.add_node("mail", mail_node)
        graph.add_edge(START, "charge")
        graph.add_edge("charge", "mail")
        graph.add_conditional_edges("mail", more, {"more": "charge", "done": END})
    else:
        graph.add_node("serve", serve_node)
        graph.add_edge(START, "serve")
        graph.add_conditional_edges("serve", more, {"more": "serve", "done": END})
    return graph


def main() -> None:
    """Start the thread, or go on with it where a checkpoint of it exists."""
    config: RunnableConfig = {
        "configurable": {"thread_id": THREAD},
        "recursion_limit": 2 * CUSTOMERS + 2,
    }
    with SqliteSaver.from_conn_string(str(STATE / "checkpoints.sqlite")) as saver:
        begun = saver.get_tuple(config) is not None
        first = State(orders=ORDERS, charges=[], mails=[])
        final = (
            build()
            .compile(checkpointer=saver)
            .invoke(None if begun else first, config, durability=DURABILITY)
        )
    print(f"{len(final['mails'])} customers served")


if __name__ == "__main__":
    main()
