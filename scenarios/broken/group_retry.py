"""Missing: a record for each step of a group. What failed is the third, what is retried is all."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario

GROUP = 3


def main() -> None:
    """A deposit, and then groups of three charges, each group with one record; all by key."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    first, *others = shop.inputs()
    if "groups" not in checkpoint.values:
        services.charge(first, key="deposit")
        checkpoint.save(groups=0)
    for group in range(checkpoint.values["groups"], len(others) // GROUP):
        for number in range(group * GROUP, (group + 1) * GROUP):
            services.charge(others[number], key=f"order-{number}")
        checkpoint.save(groups=group + 1)


scenario = Scenario(
    title="a group of steps has one record, and is retried as a whole",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 7),
    schedules=("kill@payments.charge#4.received",),
    finds=("redone_step",),
    cases=("REDO-4",),
)
