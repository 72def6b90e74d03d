"""Each balance is deleted and loaded anew in one transaction: doing it again changes nothing.

The opposite fault is `broken/reloaded_in_two.py` (a kill leaves the day without its row).
"""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario, probe

TABLES = """
CREATE TABLE balances (email TEXT PRIMARY KEY, cents INTEGER NOT NULL);
CREATE TABLE lines (email TEXT, line TEXT);
"""


def main() -> None:
    """Replace what is stored of each customer, then note that."""
    books = shop.database()
    checkpoint = shop.Checkpoint()
    owners = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(owners)):
        email, cents = owners[number]["email"], owners[number]["cents"]
        with books:
            books.execute("DELETE FROM balances WHERE email = ?", (email,))
            books.execute("DELETE FROM lines WHERE email = ?", (email,))
            books.execute("INSERT INTO balances VALUES (?, ?)", (email, cents))
            books.executemany("INSERT INTO lines VALUES (?, ?)", [(email, "due")] * 2)
        probe.point("balance.loaded")
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="each balance is deleted and loaded anew in one transaction",
    task=main,
    services=("database",),
    tables=TABLES,
    inputs=lambda seed: shop.customers(seed, 4),
    cases=("DUP-1", "HALF-1"),
)
