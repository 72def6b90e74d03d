"""Missing: one transaction. A balance is raised in the database, and noted as raised beside it."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario, probe

TABLES = "CREATE TABLE accounts (email TEXT PRIMARY KEY, cents INTEGER NOT NULL)"


def main() -> None:
    """Open an account for every customer, then add to each what is due, and note that."""
    books = shop.database()
    checkpoint = shop.Checkpoint()
    owners = shop.inputs()
    with books:
        for owner in owners:
            books.execute("INSERT OR IGNORE INTO accounts VALUES (?, 0)", (owner["email"],))
    for number in range(checkpoint.values.get("done", 0), len(owners)):
        due = owners[number]["cents"], owners[number]["email"]
        with books:
            books.execute("UPDATE accounts SET cents = cents + ? WHERE email = ?", due)
        probe.point("balance.raised")
        checkpoint.save(done=number + 1)  # a kill before this line adds it twice


scenario = Scenario(
    title="what is added to a balance is noted after it, so a resume adds it again",
    task=main,
    services=("database",),
    tables=TABLES,
    inputs=lambda seed: shop.customers(seed, 4),
    finds=("wrong_inputs",),
    cases=("DUP-1", "TORN-9"),
)
