"""Missing: the effect's id. The intent is there, but nobody can be asked what came of it."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Intent, charge, completion; an intent without completion is charged again."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    for number, customer in enumerate(shop.inputs()):
        step = f"charge-{number}"
        if checkpoint.values.get(step) == "done":
            continue
        checkpoint.save(**{step: "begun"})
        services.charge(customer)  # no key, and no reference to look it up by
        checkpoint.save(**{step: "done"})


scenario = Scenario(
    title="an intent is recorded, but no id by which the service could be asked",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 12),
    finds=("duplicate_effect",),
    cases=("DUP-6", "WORLD-5"),
)
