"""Missing: the region of an order. A resume deals the regions out anew, where no key was seen."""

from __future__ import annotations

from itertools import cycle

import _shop as shop

from chaoskit import Scenario

REGIONS = ("eu", "us")


def main() -> None:
    """Charge by each region in turn, with a key; whose turn it is only this process knows."""
    services = {region: shop.Shop(region) for region in REGIONS}
    checkpoint = shop.Checkpoint()
    buyers, turns = shop.inputs(), cycle(REGIONS)
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        services[next(turns)].charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="a resume sends an order with its key to the other region, which charges it again",
    task=main,
    services=("payments:eu", "payments:us"),
    inputs=lambda seed: shop.customers(seed, 4),
    contract={"payments.charge": "at-most-once"},
    finds=("wrong_inputs",),
    cases=("KEY-3",),
)
