"""Missing: one place that asks. A resume settles the charge in doubt, and its loop asks again."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge by key; the service dedupes, so that nobody sees that each resume asks twice."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    doubtful = checkpoint.values.get("doing")
    if doubtful is not None:
        services.charge(buyers[doubtful], key=f"order-{doubtful}")
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        checkpoint.save(doing=number)
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(doing=None, done=number + 1)


scenario = Scenario(
    title="a resume asks twice for the charge that was in doubt",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 4),
    finds=("redone_step",),
    cases=("REDO-3",),
)
