"""Each order stays in its table until it is paid, by a key that its name makes.

The opposite fault is `broken/row_taken_first.py` (the order goes before it is paid).
"""

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
    """Charge each order by key, then take it from the table."""
    books = shop.database()
    services = shop.Shop()
    while (row := books.execute("SELECT * FROM queue ORDER BY customer").fetchone()) is not None:
        name, cents = row
        customer = {"name": name, "email": f"{name}@example.com", "cents": cents}
        services.charge(customer, key=f"order-{name}")
        probe.point("order.paid")
        with books:
            books.execute("DELETE FROM queue WHERE customer = ?", (name,))


scenario = Scenario(
    title="an order stays in its table until it is paid",
    task=main,
    services=("payments", "database"),
    tables=TABLES,
    prepare=(sys.executable, "-c", FILL),
    cases=("LOST-2",),
)
