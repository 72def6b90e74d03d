"""Missing: a key. A lease says who may charge, and nothing says what was charged."""

from __future__ import annotations

import os
import time

import _shop as shop

from chaoskit import Scenario

TABLES = "CREATE TABLE leases (name TEXT PRIMARY KEY, owner INTEGER, until REAL)"

RENEW = """
INSERT INTO leases VALUES ('billing', ?, ?)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until
"""


def main() -> None:
    """Renew the lease, charge, and note that."""
    books = shop.database()
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        with books:
            books.execute(RENEW, (os.getpid(), time.time() + 30))
        services.charge(buyers[number])
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="a lease is renewed before each charge, which has no key",
    task=main,
    services=("payments", "database"),
    tables=TABLES,
    inputs=lambda seed: shop.customers(seed, 4),
    ignore=("database.leases.*",),
    finds=("duplicate_effect",),
    cases=("DUP-1",),
)
