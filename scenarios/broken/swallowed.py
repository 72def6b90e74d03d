"""Missing: a second try of the recovery. What goes wrong in it is logged, and that was it."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def recover(services: shop.Shop, checkpoint: shop.Checkpoint) -> None:
    """Ask what came of the charge that was under way."""
    begun = checkpoint.values.get("begun")
    if begun is not None and services.find_charge(begun) is not None:
        checkpoint.save(done=int(begun) + 1)


def main() -> None:
    """Recover, and charge by key what is not done."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    try:
        recover(services, checkpoint)
    except (OSError, RuntimeError) as error:
        print(f"recovery failed, will not be tried again: {error}")
        return
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        checkpoint.save(begun=str(number))
        services.charge(buyers[number], key=f"order-{number}", reference=str(number))
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="an error in the recovery is logged, and the run is pending for ever",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    schedules=("kill@payments.charge#2.received / down:1@payments.*#*",),
    finds=("false_success",),
    cases=("LOST-7",),
)
