"""Missing: the checkpoint. There is a log, but nothing that a resume could read."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge every customer from the first to the last, whatever happened before."""
    services = shop.Shop()
    for number, customer in enumerate(shop.inputs(), 1):
        services.charge(customer)
        print(f"charged customer {number}: {customer['name']}")


scenario = Scenario(
    title="no checkpoint at all, only a log",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 12),
    finds=("duplicate_effect", "silent_restart"),
    cases=("DUP-4", "DUP-8"),
)
