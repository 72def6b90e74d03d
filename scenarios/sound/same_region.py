"""A key belongs to the region that has seen it: each order is paid where it was begun.

In `broken/other_region.py` a resume pays by the other region, which has never seen the key.
"""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario

REGIONS = ("eu", "us")


def main() -> None:
    """Note the region of an order before it is charged, and charge it there, in each attempt."""
    services = {region: shop.Shop(region) for region in REGIONS}
    checkpoint = shop.Checkpoint()
    for number, customer in enumerate(shop.inputs()):
        order = f"order-{number}"
        region = checkpoint.values.get(order, REGIONS[number % len(REGIONS)])
        if region == "done":
            continue
        checkpoint.save(**{order: region})
        services[region].charge(customer, key=order)
        checkpoint.save(**{order: "done"})


scenario = Scenario(
    title="each order has its region, and a resume pays it there",
    task=main,
    services=("payments:eu", "payments:us"),
    inputs=lambda seed: shop.customers(seed, 4),
    cases=("KEY-3",),
)
