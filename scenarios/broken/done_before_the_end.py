"""Missing: a record of the run's end. "All steps done" is taken for "run done"."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge by stored key; the closing mail is owed only by the process that began the run."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    if checkpoint.values.get("done", 0) == len(buyers):
        return  # every step is done, so what else could there be?
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)
    services.send("owner@example.com", "All charged", "the month is closed\n", key="month")


scenario = Scenario(
    title="all steps done is taken for run done, and the closing mail is never sent",
    task=main,
    services=("payments", "email"),
    inputs=lambda seed: shop.customers(seed, 12),
    finds=("false_success",),
    cases=("LOST-10",),
)
