"""Missing: the inputs in the name of a result. A stage that ran once is never run again."""

from __future__ import annotations

import _shop as shop

from chaoskit import Change, Scenario, probe


def main() -> None:
    """Add up, keep the sum under the name of the stage, and mail it by key."""
    cache = shop.Checkpoint("cache.json")
    if "sum" not in cache.values:
        cache.save(sum=sum(customer["cents"] for customer in shop.inputs()))
        probe.point("sum.kept")
    total = cache.values["sum"]  # of which inputs?
    services = shop.Shop()
    services.send("owner@example.com", "The sum", f"{total} cents\n", key=f"sum-{total}")


scenario = Scenario(
    title="the result of a stage is kept by its name and used for other inputs",
    task=main,
    services=("email",),
    inputs=lambda seed: shop.customers(seed, 3),
    changes={
        "inputs": Change(
            inputs=lambda seed: shop.customers(seed, 4), right="replan", finding="stale_world"
        )
    },
    schedules=("kill@sum.kept#1 / change:inputs",),
    finds=("stale_world",),
    cases=("INPUT-2",),
)
