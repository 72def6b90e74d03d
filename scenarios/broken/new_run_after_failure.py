"""Missing: what the failed run had done. Its retry is a new run, with an empty history."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge by key; where a charge fails the run is over, and the next one is another."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        try:
            services.charge(buyers[number], key=f"order-{number}")
        except RuntimeError:
            (shop.STATE / "checkpoint.json").unlink(missing_ok=True)
            raise
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="after a failed step the whole run is retried with an empty history",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 4),
    schedules=("reject:503@payments.charge#4",),
    finds=("silent_restart",),
    cases=("REDO-1",),
)
