"""Missing: the difference between "about to" and "done". The record comes first and is believed."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Note the charge, then charge; the closing mail is done right."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        checkpoint.save(done=number + 1)  # a kill after this line loses the charge
        services.charge(buyers[number])
    text = f"{len(buyers)} customers were charged\n"
    services.send("owner@example.com", "All charged", text, key="all-charged")


scenario = Scenario(
    title="the record is written before the charge and read as done",
    task=main,
    services=("payments", "email"),
    inputs=lambda seed: shop.customers(seed, 12),
    finds=("lost_effect",),
    cases=("LOST-6",),
)
