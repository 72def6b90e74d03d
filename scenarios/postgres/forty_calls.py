"""Forty customers, with the store of the run and the shop's books in one PostgreSQL database.

The same task as ``sound/forty_calls.py``, which see for what it relies on. Here each record of a
step is a commit in the server as well, so that a kill may fall on either side of any of them.
"""

from __future__ import annotations

from typing import Any

import _shop as shop

from chaoskit import Scenario
from chaoskit.runtime import Effect, open_run

TABLES = "CREATE TABLE sales (id int PRIMARY KEY, name text, email text, cents int);"


def main() -> None:
    """Serve every customer once, however often this is killed."""
    services = shop.Shop()
    buyers = shop.inputs()
    with open_run(shop.postgres_url(), inputs=buyers) as run, shop.postgres() as books:
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

            run.step(f"charge/{number}", charge, inputs=customer, keyed=True)
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


def _insert(cursor: Any, values: tuple[object, ...]) -> None:
    cursor.execute("INSERT INTO sales VALUES (%s, %s, %s, %s)", values)


scenario = Scenario(
    title="forty customers, with the run's store and the shop's books in one PostgreSQL database",
    task=main,
    services=("payments", "email", "postgres"),
    settled=("email.send",),
    inputs=shop.customers,
    tables=TABLES,
)

few = Scenario(
    title="the same with one customer, for every window of every commit",
    task=main,
    services=("payments", "email", "postgres"),
    settled=("email.send",),
    inputs=lambda seed: shop.customers(seed, 1),
    tables=TABLES,
)
