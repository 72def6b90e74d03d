"""A file that goes on where its record says: a line that is not recorded is cut off first.

The opposite fault is `broken/rolled_back.py`.
"""

from __future__ import annotations

import os

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """A line for each customer, and a record of how long the file is after each."""
    checkpoint = shop.Checkpoint()
    with open("lines.csv", "a", encoding="utf-8") as lines:
        lines.truncate(checkpoint.values.get("bytes", 0))
        done = checkpoint.values.get("done", 0)
        for number, buyer in enumerate(shop.inputs()[done:], done + 1):
            lines.write(f"{buyer['email']},{buyer['cents']}\n")
            lines.flush()
            os.fsync(lines.fileno())
            checkpoint.save(done=number, bytes=lines.tell())


scenario = Scenario(
    title="a file goes on where its record says, and nothing finished is written again",
    task=main,
    outputs=("lines.csv",),
    inputs=lambda seed: shop.customers(seed, 4),
    cases=("REDO-7",),
)
