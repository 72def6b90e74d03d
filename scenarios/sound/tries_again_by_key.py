"""A retry with the same key: whichever of the two requests lands first is the one that counts.

The opposite fault is `broken/tries_again_at_once.py`.
"""

from __future__ import annotations

from http.client import HTTPException

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge by key; try once more where the answer does not come."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        try:
            services.charge(buyers[number], key=f"order-{number}")
        except (OSError, HTTPException):
            services = shop.Shop()
            services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="a charge whose answer did not come is sent again with its key",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    behaviours=("commit-late:1@payments.charge#2",),
    cases=("DUP-3",),
)
