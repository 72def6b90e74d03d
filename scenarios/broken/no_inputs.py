"""Missing: the step's inputs. The order is drawn anew by each attempt, the position is not."""

from __future__ import annotations

import random

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Mail every customer in random order; only the position survives a kill."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    attempt = checkpoint.values.get("attempt", 0) + 1
    checkpoint.save(attempt=attempt)
    buyers = shop.inputs()
    random.Random(attempt).shuffle(buyers)  # which one is number five? ask the last process
    for number in range(checkpoint.values.get("next", 0), len(buyers)):
        checkpoint.save(next=number)
        key = f"mail-{number}-{buyers[number]['email']}"
        services.send(buyers[number]["email"], *shop.receipt(buyers[number]), key=key)
    checkpoint.save(next=len(buyers))
    services.send("owner@example.com", "All mailed", "every customer once\n", key="end")


scenario = Scenario(
    title="the checkpoint holds a position in a list that is drawn anew",
    task=main,
    services=("email",),
    inputs=lambda seed: shop.customers(seed, 6),
    redo=("email.send",),
    finds=("duplicate_effect", "lost_effect"),
    cases=("INPUT-6",),
)
