"""A lease is renewed before each charge, as often as it takes; the charge has a key.

The opposite fault is `broken/lease_is_no_key.py` (the lease is taken for proof).
"""

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
    """Renew the lease, charge by key, and note that."""
    books = shop.database()
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        with books:
            books.execute(RENEW, (os.getpid(), time.time() + 30))
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="a lease is renewed before each charge, which has a key",
    task=main,
    services=("payments", "database"),
    tables=TABLES,
    inputs=lambda seed: shop.customers(seed, 4),
    ignore=("database.leases.*",),
    cases=("DUP-1",),
)
