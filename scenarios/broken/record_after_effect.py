"""Missing: the order. The record is written after the effect, with nothing to ask about it."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge every customer, and note after each charge that it is done."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        services.charge(buyers[number])
        checkpoint.save(done=number + 1)  # a kill before this line charges twice


scenario = Scenario(
    title="the record is written after the charge",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 12),
    finds=("duplicate_effect",),
    cases=("DUP-1", "DUP-2"),
)
