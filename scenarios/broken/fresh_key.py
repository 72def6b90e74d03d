"""Missing: a stable key. Each attempt makes its own, so the service never sees a repeat."""

from __future__ import annotations

import uuid

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge with an idempotency key that is minted at the call."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    for number, customer in enumerate(shop.inputs()):
        if number < checkpoint.values.get("done", 0):
            continue
        services.charge(customer, key=str(uuid.uuid4()))
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="the idempotency key is made anew by each attempt",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 12),
    finds=("duplicate_effect",),
    cases=("KEY-1", "DUP-3"),
)
