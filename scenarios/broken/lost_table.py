"""Missing: a transaction. A table is copied, dropped and renamed; the rerun drops the only copy."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import _shop as shop

from chaoskit import Scenario, probe

STEPS = (
    "DROP TABLE IF EXISTS fresh",  # left over from an earlier try
    "CREATE TABLE fresh (name TEXT, cents INTEGER, currency TEXT DEFAULT 'eur')",
    "INSERT INTO fresh (name, cents) SELECT name, cents FROM sales",
    "DROP TABLE sales",
    "ALTER TABLE fresh RENAME TO sales",
)


def old_books(folder: Path, seed: int) -> None:
    """The books as they were."""
    with closing(sqlite3.connect(folder / "books.sqlite")) as books:
        books.execute("CREATE TABLE sales (name TEXT, cents INTEGER)")
        rows = [(c["name"], c["cents"]) for c in shop.customers(seed, 4)]
        books.executemany("INSERT INTO sales VALUES (?, ?)", rows)
        books.commit()


def main() -> None:
    """Give the table a column, in five statements that commit one by one; then export it."""
    with closing(sqlite3.connect(shop.STATE / "books.sqlite", isolation_level=None)) as books:
        books.execute("CREATE TABLE IF NOT EXISTS sales (name TEXT, cents INTEGER)")
        names = [row[1] for row in books.execute("PRAGMA table_info(sales)")]
        if "currency" not in names:
            for statement in STEPS:
                books.execute(statement)
                probe.point("migration.statement")
        rows = books.execute("SELECT name, cents FROM sales").fetchall()
    (shop.STATE / "sales.json").write_text(json.dumps(rows), encoding="utf-8")


scenario = Scenario(
    title="a migration that was cut short is begun anew, and drops the only copy",
    task=main,
    prepare=old_books,
    outputs=("sales.json",),
    schedules=("kill@migration.statement#4",),
    finds=("diverged_state",),
    cases=("HALF-1",),
)
