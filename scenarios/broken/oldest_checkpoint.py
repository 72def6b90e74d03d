"""Missing: the newest checkpoint. The names are sorted as texts, and "5" comes after "15"."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario

STEP = 5


def main() -> None:
    """Charge by key, with a checkpoint of its own after each charge."""
    services = shop.Shop()
    buyers = shop.inputs()
    known = [file.stem for file in shop.STATE.glob("*.json")]
    newest = shop.Checkpoint(f"{max(known, default='0')}.json")  # max of texts
    for number in range(newest.values.get("done", 0), len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        shop.Checkpoint(f"{STEP * (number + 1)}.json").save(done=number + 1)


scenario = Scenario(
    title="a resume takes an old checkpoint for the newest one",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 4),
    schedules=("kill@payments.charge#4.received",),
    finds=("redone_step",),
    cases=("LOST-13",),
)
