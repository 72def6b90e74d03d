"""Missing: all or nothing. A file that exists counts as finished, and it is written in place."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario, probe

CHUNKS = 4


def main() -> None:
    """Write one report for each customer; skip those that are there."""
    for customer in shop.inputs():
        file = shop.STATE / f"{customer['email']}.txt"
        if file.exists():
            continue
        with file.open("w", encoding="utf-8") as report:
            for chunk in range(CHUNKS):
                report.write(f"{customer['name']}, part {chunk + 1}\n")
                report.flush()
                probe.point("chunk.written")


scenario = Scenario(
    title="a file that exists counts as finished, however much of it is there",
    task=main,
    inputs=lambda seed: shop.customers(seed, 20)[:10],
    outputs=("*.txt",),
    finds=("diverged_state",),
    cases=("HALF-3",),
)
