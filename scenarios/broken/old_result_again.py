"""Missing: the difference between finished and failed. A known run id returns what there is."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge by key, once for a run id; whoever comes again gets the record of the first one."""
    checkpoint = shop.Checkpoint()
    if "run" in checkpoint.values:
        print(f"run 7 was submitted before: {checkpoint.values}")
        return  # how far it had come is in there, and nobody looks
    checkpoint.save(run=7)
    services = shop.Shop()
    for number, customer in enumerate(shop.inputs()):
        services.charge(customer, key=f"order-{number}")
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="the guard against a second run takes an interrupted one for a finished one",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 4),
    finds=("false_success",),
    cases=("LOST-11",),
)
