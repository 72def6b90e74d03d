"""Missing: whose it is. A name that is taken is somebody else's, so there is a second one."""

from __future__ import annotations

import sqlite3

import _shop as shop

from chaoskit import Scenario, probe

TABLES = "CREATE TABLE volumes (name TEXT PRIMARY KEY);"


def create(books: sqlite3.Connection, name: str) -> str:
    """A new volume; its name, which differs where that one is taken."""
    for suffix in ("", "-2", "-3"):
        try:
            with books:
                books.execute("INSERT INTO volumes VALUES (?)", (name + suffix,))
        except sqlite3.IntegrityError:
            continue  # perhaps it is ours
        return name + suffix
    raise RuntimeError(f"no name left for {name}")


def main() -> None:
    """Create three volumes; each is recorded once it is there."""
    books = shop.database()
    checkpoint = shop.Checkpoint()
    for name in ("data", "logs", "cache"):
        if name not in checkpoint.values:
            made = create(books, name)
            probe.point("volume.created")
            checkpoint.save(**{name: made})


scenario = Scenario(
    title="a volume that was created and not recorded gets a second one with another name",
    task=main,
    services=("database",),
    tables=TABLES,
    schedules=("kill@volume.created#2",),
    finds=("wrong_inputs",),
    cases=("WORLD-4",),
)
