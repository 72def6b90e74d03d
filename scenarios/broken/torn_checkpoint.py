"""Missing: a whole checkpoint at every moment. It is written in place, over the only copy."""

from __future__ import annotations

import json

import _shop as shop

from chaoskit import Scenario, probe


def main() -> None:
    """Charge by key; a checkpoint that cannot be read ends every resume."""
    services = shop.Shop()
    file = shop.STATE / "checkpoint.json"
    done = json.loads(file.read_text(encoding="utf-8"))["done"] if file.exists() else 0
    buyers = shop.inputs()
    for number in range(done, len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        with file.open("w", encoding="utf-8") as checkpoint:  # the old one is gone
            probe.point("checkpoint.empty")
            json.dump({"done": number + 1}, checkpoint)


scenario = Scenario(
    title="a checkpoint is written in place, and a torn one cannot be read",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 4),
    schedules=("kill@checkpoint.empty#2",),
    finds=("stuck",),
    cases=("TORN-1", "TORN-5"),
)
