"""Missing: an answer to "what came of it?". A pending operation blocks everything, for ever."""

from __future__ import annotations

import sys

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Intent, charge, completion; with an intent left over nothing goes on."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    pending = [step for step, phase in checkpoint.values.items() if phase == "begun"]
    if pending:
        sys.exit(f"there are pending operations: {pending}")  # and no way to settle them
    for number, customer in enumerate(shop.inputs()):
        step = f"charge-{number}"
        if step not in checkpoint.values:
            checkpoint.save(**{step: "begun"})
            services.charge(customer)
            checkpoint.save(**{step: "done"})


scenario = Scenario(
    title="an interrupted operation is pending, and nobody can say what came of it",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    finds=("stuck",),
    cases=("WORLD-5",),
)
