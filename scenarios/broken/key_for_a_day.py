"""Missing: the age of the key. After a week the service has forgotten it, and charges again."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge with a key that is the same in each attempt, however old it is."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="a run is resumed a week later with a key that the service kept for a day",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    schedules=("kill@payments.charge#2.applied / clock:+7d",),
    finds=("duplicate_effect",),
    cases=("KEY-3",),
)
