"""Missing: where to go on in the output. A resume writes the finished lines once more."""

from __future__ import annotations

import os

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """A line for each customer, and a record after each; the file begins anew each time."""
    checkpoint = shop.Checkpoint()
    with open("lines.csv", "w", encoding="utf-8") as lines:  # which rolls back what was done
        for number, buyer in enumerate(shop.inputs(), 1):
            lines.write(f"{buyer['email']},{buyer['cents']}\n")
            lines.flush()
            os.fsync(lines.fileno())
            checkpoint.save(done=number)


scenario = Scenario(
    title="finished lines are rolled back and written again with equal bytes",
    task=main,
    outputs=("lines.csv",),
    inputs=lambda seed: shop.customers(seed, 4),
    finds=("silent_restart",),
    cases=("REDO-7",),
)
