"""A backfill in three stages over every airport of the world, in batches, with a mail at the end.

Some 28,000 rows from the package airportsdata: loaded, then enriched, then summed up by country.
Each batch and its completion are written in one transaction; the closing mail carries a key.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from itertools import islice
from typing import Any

import _shop as shop

from chaoskit import Scenario
from chaoskit.runtime import open_run

BATCH = 2_000
TABLES = """
CREATE TABLE airports (icao TEXT PRIMARY KEY, name TEXT, country TEXT, lat REAL, lon REAL);
CREATE TABLE distances (icao TEXT PRIMARY KEY, km INTEGER);
CREATE TABLE countries (country TEXT PRIMARY KEY, airports INTEGER, farthest_km INTEGER);
"""

HOME = (52.36, 13.5)


def main() -> None:
    """Run the three stages and report."""
    books = shop.database()
    settings = shop.inputs()
    with open_run(shop.STATE / "run.db", inputs=settings) as run:
        if run.finished:
            return
        for number, batch in enumerate(_batches(_airports(), settings["batch"]), 1):
            run.atomic_step(f"load/{number}", books, lambda c, b=batch: _load(c, b))  # type: ignore[misc]
        known = [row[0] for row in books.execute("SELECT icao FROM airports ORDER BY icao")]
        for number, names in enumerate(_batches(iter(known), settings["batch"]), 1):
            run.atomic_step(f"enrich/{number}", books, lambda c, n=names: _enrich(c, n))  # type: ignore[misc]
        total = run.atomic_step("sum", books, _sum)
        services = shop.Shop()
        text = f"{total} airports in {len(_countries(books))} countries\n"
        run.step(
            "mail",
            lambda effect: services.send("ops@example.com", "Backfill done", text, key=effect.key),
            inputs=text,
            keyed=True,
        )
        run.finish(total)


def _airports() -> Iterator[tuple[Any, ...]]:
    import airportsdata

    for icao, airport in airportsdata.load("ICAO").items():
        yield icao, airport["name"], airport["country"], airport["lat"], airport["lon"]


def _batches(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while batch := list(islice(items, size)):
        yield batch


def _load(cursor: sqlite3.Cursor, batch: list[Any]) -> int:
    cursor.executemany("INSERT INTO airports VALUES (?, ?, ?, ?, ?)", batch)
    return len(batch)


def _enrich(cursor: sqlite3.Cursor, names: list[str]) -> int:
    marks = ",".join("?" * len(names))
    rows = cursor.execute(f"SELECT icao, lat, lon FROM airports WHERE icao IN ({marks})", names)
    made = [(icao, _kilometres(lat, lon)) for icao, lat, lon in rows.fetchall()]
    cursor.executemany("INSERT INTO distances VALUES (?, ?)", made)
    return len(made)


def _sum(cursor: sqlite3.Cursor) -> int:
    cursor.execute(
        "INSERT INTO countries SELECT country, count(*), max(km) "
        "FROM airports JOIN distances USING (icao) GROUP BY country"
    )
    return int(cursor.execute("SELECT sum(airports) FROM countries").fetchone()[0])


def _countries(books: sqlite3.Connection) -> list[Any]:
    return books.execute("SELECT country FROM countries").fetchall()


def _kilometres(lat: float, lon: float) -> int:
    """Great-circle distance from home (haversine formula, a mean Earth radius of 6371 km)."""
    one, two = math.radians(HOME[0]), math.radians(lat)
    a = (
        math.sin((two - one) / 2) ** 2
        + math.cos(one) * math.cos(two) * math.sin(math.radians(lon - HOME[1]) / 2) ** 2
    )
    return round(2 * 6371 * math.asin(math.sqrt(a)))


scenario = Scenario(
    title="a three-stage backfill of some 28,000 airports in batches, with a mail at the end",
    task=main,
    services=("email", "database"),
    inputs=lambda seed: {"batch": BATCH, "seed": seed},
    tables=TABLES,
)
