"""Sales that carry their number, so that a kill does no harm; for two broken tasks."""

from __future__ import annotations

from typing import Any

TABLES = "CREATE TABLE sales (id serial PRIMARY KEY, number int, name text, cents int)"


def sold(books: Any) -> int:
    """The number of the last sale that is in the books."""
    return int(books.execute("SELECT coalesce(max(number), 0) FROM sales").fetchone()[0])


def sell(books: Any, number: int, customer: dict[str, Any]) -> None:
    """Book a sale, in a transaction."""
    with books.transaction():
        values = number, customer["name"], customer["cents"]
        books.execute("INSERT INTO sales (number, name, cents) VALUES (%s, %s, %s)", values)


def lost() -> type[Exception]:
    """What psycopg raises where a connection is lost."""
    import psycopg

    return psycopg.OperationalError
