"""Missing: one record. A step's result and the position after it are two writes."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario, probe


def main() -> None:
    """Charge by key, store the result, then move the position; only the position is read."""
    services = shop.Shop()
    results, position = shop.Checkpoint("results.json"), shop.Checkpoint("position.json")
    first, *buyers = shop.inputs()
    if "next" not in position.values:
        probe.step("deposit", "started")
        position.save(next=0, deposit=services.charge(first, key="deposit"))
        probe.step("deposit", "recorded")
    for number in range(position.values["next"], len(buyers)):
        step = f"charge/{number}"
        probe.step(step, "started")
        results.save(**{step: services.charge(buyers[number], key=f"order-{number}")})
        probe.step(step, "recorded")
        probe.point("between.records")
        position.save(next=number + 1)


scenario = Scenario(
    title="a step's result and the position are two records, and a kill comes between them",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 4),
    schedules=("kill@between.records#2",),
    finds=("redone_step",),
    cases=("DUP-1", "TWO-7"),
)
