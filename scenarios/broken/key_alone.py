"""Missing: a look-up. The key is stored and sent again, and the service has forgotten it."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge with a key that is the same in each attempt, and rely on nothing else."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="a stored key is relied on, and the service does not remember it",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    behaviours=("forget-keys@payments.charge#*",),
    finds=("duplicate_effect",),
    cases=("KEY-3",),
)
