"""Missing: one transaction. A row is deleted, then loaded anew; a kill between them loses it."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario, probe

TABLES = """
CREATE TABLE balances (number INTEGER PRIMARY KEY, cents INTEGER NOT NULL);
INSERT INTO balances VALUES (0, 0), (1, 0), (2, 0), (3, 0);
"""


def main() -> None:
    """Replace each balance that is still empty."""
    books = shop.database()
    owners = shop.inputs()
    empty = "SELECT number FROM balances WHERE cents = 0 ORDER BY number"
    for (number,) in books.execute(empty).fetchall():
        with books:
            books.execute("DELETE FROM balances WHERE number = ?", (number,))
        probe.point("balance.deleted")  # after a kill here the resume finds none to load
        with books:
            books.execute("INSERT INTO balances VALUES (?, ?)", (number, owners[number]["cents"]))


scenario = Scenario(
    title="a balance is deleted in one transaction and loaded anew in the next",
    task=main,
    services=("database",),
    tables=TABLES,
    inputs=lambda seed: shop.customers(seed, 4),
    finds=("lost_effect",),
    cases=("LOST-2", "HALF-1"),
)
