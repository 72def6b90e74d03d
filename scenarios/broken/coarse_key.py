"""Missing: the step in the key. A second, legitimate, identical charge is taken for a repeat."""

from __future__ import annotations

import hashlib
import json

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge with a key made from the arguments alone."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    for number, customer in enumerate(shop.inputs()):
        if number < checkpoint.values.get("done", 0):
            continue
        arguments = json.dumps(customer, sort_keys=True).encode()
        services.charge(customer, key=hashlib.sha256(arguments).hexdigest())
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="the idempotency key is made from the arguments only",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 18),
    finds=("lost_effect",),
    cases=("KEY-2",),
)
