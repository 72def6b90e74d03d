"""Missing: the order while it is paid. Its row is deleted first, and nobody else knows of it."""

from __future__ import annotations

import sys

import _shop as shop

from chaoskit import Scenario, probe

TABLES = "CREATE TABLE queue (customer TEXT PRIMARY KEY, cents INTEGER NOT NULL)"

FILL = """
import os, sqlite3
books = sqlite3.connect(os.environ["CHAOSKIT_DATABASE_URL"].removeprefix("sqlite:///"))
with books:
    orders = [("ann", 1200), ("bob", 450), ("cyd", 9900), ("dan", 700)]
    books.executemany("INSERT INTO queue VALUES (?, ?)", orders)
"""
"""What was ordered before the task began."""


def main() -> None:
    """Take each order from the table, then charge it by key."""
    books = shop.database()
    services = shop.Shop()
    while (row := books.execute("SELECT * FROM queue ORDER BY customer").fetchone()) is not None:
        name, cents = row
        with books:
            books.execute("DELETE FROM queue WHERE customer = ?", (name,))
        probe.point("order.taken")
        customer = {"name": name, "email": f"{name}@example.com", "cents": cents}
        services.charge(customer, key=f"order-{name}")


scenario = Scenario(
    title="an order is deleted from its table before it is paid",
    task=main,
    services=("payments", "database"),
    tables=TABLES,
    prepare=(sys.executable, "-c", FILL),
    finds=("lost_effect", "false_success"),
    cases=("LOST-2",),
)
