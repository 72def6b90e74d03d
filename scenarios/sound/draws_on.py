"""A search that draws other candidates after a resume, and tries none of them twice.

The opposite fault is `broken/draws_again.py`.
"""

from __future__ import annotations

import os
import random

import _shop as shop

from chaoskit import Scenario, probe

TABLES = "CREATE TABLE trials (number INTEGER PRIMARY KEY, rate INTEGER NOT NULL);"
TRIALS = 5


def main() -> None:
    """A row for each candidate; what was tried is in the table."""
    books = shop.database()
    tried = [rate for (rate,) in books.execute("SELECT rate FROM trials ORDER BY number")]
    draws = random.Random(f"{os.environ['CHAOSKIT_SEED']} {len(tried)}")
    while len(tried) < TRIALS:
        rate = draws.randrange(10**9)
        if rate not in tried:
            with books:
                books.execute("INSERT INTO trials VALUES (?, ?)", (len(tried), rate))
            tried.append(rate)
            probe.point("trial.made")


scenario = Scenario(
    title="a search draws on after a resume, and tries nothing twice",
    task=main,
    services=("database",),
    tables=TABLES,
    identity={"database.trials.insert": ("rate",)},
    contract={"database.trials.*": "never-twice"},
    cases=("DUP-1",),
)
