"""Missing: an id of the step that is the same in each attempt. The runtime hands out its own."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge with the only id that a step is given: run, attempt, number."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    attempt = checkpoint.values.get("attempt", 0) + 1
    checkpoint.save(attempt=attempt)
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        services.charge(buyers[number], key=f"run-7/{attempt}/{number}")
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="the id that a step is given for its key holds the number of the attempt",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    finds=("duplicate_effect",),
    cases=("KEY-4",),
)
