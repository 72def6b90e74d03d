"""Missing: how long the key is kept. The next shift resumes, and the service has forgotten it."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge with a key that is the same in each attempt, and look nothing up."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="a run is resumed by the next shift, and the service keeps keys for an hour",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    key_lifetime={"payments": "1h"},
    resumed_within="8h",
    schedules=("kill@payments.charge#2.applied / clock:+8h",),
    finds=("duplicate_effect",),
    cases=("KEY-3",),
)
