"""Missing: trust in the record of the last step. A resume asks for the last charge once more."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge by key and record; a task that is done is taken up at its last customer."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    begin = min(checkpoint.values.get("done", 0), len(buyers) - 1)  # `range` must not be empty
    for number in range(begin, len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="the last charge is asked for again although its record was written",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 4),
    finds=("redone_step",),
    cases=("REDO-3",),
)
