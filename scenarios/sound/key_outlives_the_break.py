"""A key is enough where the service keeps it for longer than the task may lie.

Two days later a key of the usual 24 hours would be forgotten; this service keeps one for three.
`broken/key_before_the_shift.py` is resumed after its keys are gone.
"""

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
    title="a run is resumed within two days, and the service keeps keys for three",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    key_lifetime={"payments": "72h"},
    resumed_within="48h",
    schedules=(
        "kill@payments.charge#2.applied / clock:+48h",
        "kill@payments.charge#2.received / clock:+48h",
    ),
    cases=("KEY-3",),
)
