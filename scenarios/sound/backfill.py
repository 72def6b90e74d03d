"""A backfill in three stages over every airport of the world, in batches, with a mail at the end.

Some 28,000 rows from the package airportsdata: loaded, then summed up by country, then by cell of
a grid of ten degrees.
Each batch and its completion are written in one transaction; the closing mail carries a key.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from typing import Any

import _shop as shop

from chaoskit import Scenario
from chaoskit.runtime import open_run

BATCH = 2_000
GROUP = 40
TABLES = """
CREATE TABLE airports (icao TEXT PRIMARY KEY, name TEXT, country TEXT, lat REAL, lon REAL);
CREATE INDEX airports_country ON airports (country);
CREATE TABLE countries (country TEXT PRIMARY KEY, airports INTEGER, farthest_km INTEGER);
CREATE TABLE cells (cell TEXT PRIMARY KEY, airports INTEGER, nearest_km INTEGER);
"""

HOME = (52.36, 13.5)


def main() -> None:
    """Run the three stages and report."""
    books = shop.database()
    settings = shop.inputs()
    with open_run(shop.STATE / "run.db", inputs=settings) as run:
        if run.finished:
            return
        airports = islice(_airports(), settings["most"])
        for number, batch in enumerate(_batches(airports, settings["batch"]), 1):
            run.atomic_step(f"load/{number}", books, lambda c, b=batch: _load(c, b))  # type: ignore[misc]
        for number, names in enumerate(_batches(iter(_countries(books)), settings["group"]), 1):
            run.atomic_step(f"country/{number}", books, lambda c, n=names: _country(c, n))  # type: ignore[misc]
        for latitude in range(-90, 90, 10):
            run.atomic_step(f"cells/{latitude}", books, lambda c, lat=latitude: _cells(c, lat))  # type: ignore[misc]
        total = books.execute("SELECT sum(airports) FROM cells").fetchone()[0]
        services = shop.Shop()
        text = f"{total} airports in {len(_countries(books))} countries\n"
        run.step(
            "mail",
            lambda effect: services.send("ops@example.com", "Backfill done", text, key=effect.key),
            inputs=text,
            keyed=True,
            key_lasts=timedelta(hours=24),  # as the provider says
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


def _countries(books: sqlite3.Connection) -> list[str]:
    rows = books.execute("SELECT DISTINCT country FROM airports ORDER BY country")
    return [row[0] for row in rows]


def _country(cursor: sqlite3.Cursor, names: list[str]) -> int:
    for name in names:
        rows = cursor.execute("SELECT lat, lon FROM airports WHERE country = ?", (name,)).fetchall()
        farthest = max(_kilometres(lat, lon) for lat, lon in rows)
        cursor.execute("INSERT INTO countries VALUES (?, ?, ?)", (name, len(rows), farthest))
    return len(names)


def _cells(cursor: sqlite3.Cursor, latitude: int) -> int:
    rows = cursor.execute(
        "SELECT lat, lon FROM airports WHERE lat >= ? AND lat < ?", (latitude, latitude + 10)
    ).fetchall()
    cells: dict[str, list[int]] = {}
    for lat, lon in rows:
        cell = f"{latitude}/{math.floor(lon / 10) * 10}"
        cells.setdefault(cell, []).append(_kilometres(lat, lon))
    made = [(cell, len(found), min(found)) for cell, found in sorted(cells.items())]
    cursor.executemany("INSERT INTO cells VALUES (?, ?, ?)", made)
    return len(made)


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
    inputs=lambda seed: {"batch": BATCH, "group": GROUP, "most": None, "seed": seed},
    checkpoints=("run.db",),
    tables=TABLES,
)

few = replace(
    scenario,
    title="the same with sixty airports",
    inputs=lambda seed: {"batch": 20, "group": 5, "most": 60, "seed": seed},
)
