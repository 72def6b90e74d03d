"""Forty customers: charge each, mail a receipt, book a row; two of the purchases are identical.

Relies on the payment service's idempotency keys, on the mail provider's look-up by Message-ID (and
so on there being no mail under way any more when it is resumed), and on rows and their completion
being written in one transaction.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import _shop as shop

from chaoskit import Scenario
from chaoskit.runtime import Effect, open_run

KEYS_LAST = timedelta(hours=24)
"""For how long the payment service remembers a key, as Stripe does."""

TABLES = "CREATE TABLE sales (id INTEGER PRIMARY KEY, name TEXT, email TEXT, cents INTEGER);"


def main() -> None:
    """Serve every customer once, however often this is killed."""
    services = shop.Shop()
    books = shop.database()
    buyers = shop.inputs()
    with open_run(shop.STATE / "run.db", inputs=buyers) as run:
        if run.finished:
            return
        for number, customer in enumerate(buyers, 1):

            def charge(effect: Effect, customer: shop.Customer = customer) -> str:
                made = services.charge(customer, key=effect.key)
                effect.produced(made)
                return made

            def mail(effect: Effect, customer: shop.Customer = customer) -> str:
                made = services.send(customer["email"], *shop.receipt(customer), _id(effect))
                effect.produced(made)
                return made

            run.step(f"charge/{number}", charge, inputs=customer, keyed=True, key_lasts=KEYS_LAST)
            run.step(
                f"mail/{number}",
                mail,
                inputs=customer,
                look_up=lambda effect: services.find_mail(_id(effect)),
            )
            values = (number, customer["name"], customer["email"], customer["cents"])
            run.atomic_step(
                f"row/{number}",
                books,
                lambda cursor, values=values: _insert(cursor, values),  # type: ignore[misc]
                inputs=customer,
            )
        run.finish(len(buyers))


def _id(effect: Effect) -> str:
    return f"<{effect.key}@shop.example.com>"


def _insert(cursor: object, values: tuple[object, ...]) -> None:
    cursor.execute("INSERT INTO sales VALUES (?, ?, ?, ?)", values)  # type: ignore[attr-defined]


scenario = Scenario(
    title="forty customers: a charge by key, a mail by look-up, a row in one transaction",
    task=main,
    services=("payments", "email", "database"),
    settled=("email.send",),
    inputs=shop.customers,
    checkpoints=("run.db",),
    tables=TABLES,
)

few = replace(
    scenario, title="the same with four customers", inputs=lambda seed: shop.customers(seed, 4)
)
