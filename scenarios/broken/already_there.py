"""Missing: a way to ask whether it was applied. A migration and its mark are two commits."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import _shop as shop

from chaoskit import Scenario, probe

MIGRATIONS = ("CREATE TABLE sales (name TEXT)", "ALTER TABLE sales ADD COLUMN cents INTEGER")


def main() -> None:
    """Migrate, each time from the last mark on; then charge by key and book it."""
    services = shop.Shop()
    with closing(sqlite3.connect(shop.STATE / "books.sqlite", isolation_level=None)) as books:
        version = books.execute("PRAGMA user_version").fetchone()[0]
        for number, migration in enumerate(MIGRATIONS[version:], version + 1):
            books.execute(migration)
            probe.point("migration.applied")
            books.execute(f"PRAGMA user_version = {number}")
        for customer in shop.inputs():
            services.charge(customer, key=customer["email"])


scenario = Scenario(
    title="a migration and its mark are two commits, and the rerun finds the table there",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 2),
    schedules=("kill@migration.applied#1",),
    redo=("payments.charge",),
    finds=("stuck",),
    cases=("HALF-2",),
)
