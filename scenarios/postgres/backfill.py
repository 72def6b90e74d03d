"""A backfill over every airport of the world, with store and tables in one PostgreSQL database.

Two stages in batches, with a mail at the end: some 28,000 rows from the package airportsdata are
loaded, then counted by country. Each batch and its completion are written in one transaction; the
closing mail carries a key.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import _shop as shop

from chaoskit import Scenario
from chaoskit.runtime import open_run

BATCH = 2_000
GROUP = 40
TABLES = """
CREATE TABLE airports (icao text PRIMARY KEY, name text, country text);
CREATE INDEX airports_country ON airports (country);
CREATE TABLE countries (country text PRIMARY KEY, airports int);
"""


def main() -> None:
    """Run both stages and report."""
    settings = shop.inputs()
    with open_run(shop.postgres_url(), inputs=settings) as run, shop.postgres() as books:
        if run.finished:
            return
        airports = islice(_airports(), settings["most"])
        for number, batch in enumerate(_batches(airports, settings["batch"]), 1):
            run.atomic_step(f"load/{number}", books, lambda c, b=batch: _load(c, b))  # type: ignore[misc]
        for number, names in enumerate(_batches(_countries(books), settings["group"]), 1):
            run.atomic_step(f"country/{number}", books, lambda c, n=names: _count(c, n))  # type: ignore[misc]
        (total,) = books.execute("SELECT sum(airports)::int FROM countries").fetchone()
        services = shop.Shop()
        text = f"{total} airports\n"
        run.step(
            "mail",
            lambda effect: services.send("ops@example.com", "Backfill done", text, key=effect.key),
            inputs=text,
            keyed=True,
        )
        run.finish(total)


def _airports() -> Iterator[tuple[str, str, str]]:
    import airportsdata

    for icao, airport in airportsdata.load("ICAO").items():
        yield icao, airport["name"], airport["country"]


def _batches(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while batch := list(islice(items, size)):
        yield batch


def _load(cursor: Any, batch: list[Any]) -> int:
    with cursor.copy("COPY airports FROM STDIN") as copy:
        for row in batch:
            copy.write_row(row)
    return len(batch)


def _countries(books: Any) -> Iterator[str]:
    found = books.execute("SELECT DISTINCT country FROM airports ORDER BY country").fetchall()
    return iter([country for (country,) in found])


def _count(cursor: Any, names: list[str]) -> int:
    cursor.execute(
        "INSERT INTO countries SELECT country, count(*) FROM airports "
        "WHERE country = ANY (%s) GROUP BY country",
        (names,),
    )
    return int(cursor.rowcount)


def _inputs(seed: int) -> dict[str, Any]:
    return {"batch": BATCH, "group": GROUP, "most": None, "seed": seed}


def _few(seed: int) -> dict[str, Any]:
    return {"batch": 10, "group": 10, "most": 20, "seed": seed}


scenario = Scenario(
    title="a backfill of some 28,000 airports in PostgreSQL, in batches, with a mail at the end",
    task=main,
    services=("email", "postgres"),
    inputs=_inputs,
    tables=TABLES,
)

few = Scenario(
    title="the same with twenty airports, for every window of every commit",
    task=main,
    services=("email", "postgres"),
    inputs=_few,
    tables=TABLES,
)
