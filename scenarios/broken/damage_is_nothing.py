"""Missing: the difference between no checkpoint and a damaged one. Both begin from the start."""

from __future__ import annotations

import json

import _shop as shop

from chaoskit import Scenario, probe


def read() -> int:
    """How far the task came."""
    try:
        text = (shop.STATE / "checkpoint.json").read_text(encoding="utf-8")
        return int(json.loads(text)["done"])
    except (OSError, ValueError):
        return 0  # a fix for "it does not start any more"


def main() -> None:
    """Charge by key; a checkpoint that cannot be read is no checkpoint."""
    services = shop.Shop()
    buyers = shop.inputs()
    for number in range(read(), len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        with (shop.STATE / "checkpoint.json").open("w", encoding="utf-8") as checkpoint:
            probe.point("checkpoint.empty")
            json.dump({"done": number + 1}, checkpoint)


scenario = Scenario(
    title="a damaged checkpoint is taken for none, and the task starts over",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 4),
    schedules=("kill@checkpoint.empty#3",),
    finds=("silent_restart",),
    cases=("TORN-6",),
)
