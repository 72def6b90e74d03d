"""Missing: who is running. The mark was meant for a twin and stops the successor."""

from __future__ import annotations

import sys

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge by key, while the record says that somebody does."""
    checkpoint = shop.Checkpoint()
    if checkpoint.values.get("status") == "running":
        sys.exit("the run is already running")
    checkpoint.save(status="running")
    services = shop.Shop()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)
    checkpoint.save(status="finished")


scenario = Scenario(
    title="the record says running, and the successor of a dead run is refused",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 2),
    finds=("stuck",),
    cases=("STUCK-6",),
)
