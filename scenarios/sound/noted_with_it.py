"""A balance is raised, and that it was is noted in the same transaction: it is raised once.

The opposite fault is `broken/added_again.py` (raised again). A note that comes first would lose it.
"""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario, probe

TABLES = """
CREATE TABLE accounts (email TEXT PRIMARY KEY, cents INTEGER NOT NULL);
CREATE TABLE raised (number INTEGER PRIMARY KEY);
"""


def main() -> None:
    """Open an account for every customer, then add to each what is due, with a note."""
    books = shop.database()
    owners = shop.inputs()
    with books:
        for owner in owners:
            books.execute("INSERT OR IGNORE INTO accounts VALUES (?, 0)", (owner["email"],))
    raised = {number for (number,) in books.execute("SELECT number FROM raised")}
    for number in sorted({*range(len(owners))} - raised):
        due = owners[number]["cents"], owners[number]["email"]
        with books:
            books.execute("INSERT INTO raised VALUES (?)", (number,))
            probe.point("balance.noted")
            books.execute("UPDATE accounts SET cents = cents + ? WHERE email = ?", due)
        probe.point("balance.raised")


scenario = Scenario(
    title="what is added to a balance is noted in the same transaction",
    task=main,
    services=("database",),
    tables=TABLES,
    inputs=lambda seed: shop.customers(seed, 4),
    cases=("DUP-1", "TORN-9"),
)
