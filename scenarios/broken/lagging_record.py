"""Missing: a record for each step. Completions are saved by fives; the key hides it."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario

EVERY = 5


def main() -> None:
    """Charge by key; the service dedupes what is done again, but it is done again."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        if number == 0 or number % EVERY == 0:
            checkpoint.save(done=number + 1)
    checkpoint.save(done=len(buyers))


scenario = Scenario(
    title="completed steps are recorded only now and then",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 14),
    finds=("redone_step",),
    cases=("REDO-2",),
)
