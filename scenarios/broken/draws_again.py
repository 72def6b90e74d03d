"""Missing: what was tried. A search draws the same candidates again after a resume."""

from __future__ import annotations

import os
import random

import _shop as shop

from chaoskit import Scenario, probe

TABLES = "CREATE TABLE trials (number INTEGER PRIMARY KEY, rate INTEGER NOT NULL);"
TRIALS = 5


def main() -> None:
    """A row for each candidate; only how many there are is looked at."""
    books = shop.database()
    ((done,),) = books.execute("SELECT count(*) FROM trials")
    draws = random.Random(os.environ["CHAOSKIT_SEED"])
    for number in range(done, TRIALS):
        with books:
            books.execute("INSERT INTO trials VALUES (?, ?)", (number, draws.randrange(10**9)))
        probe.point("trial.made")


scenario = Scenario(
    title="a search tries the same candidates again after a resume",
    task=main,
    services=("database",),
    tables=TABLES,
    identity={"database.trials.insert": ("rate",)},
    contract={"database.trials.*": "never-twice"},
    finds=("duplicate_effect",),
    cases=("DUP-1",),
)
