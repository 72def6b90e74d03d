"""A retry budget that counts starts without progress, and ends in a refusal that names the item.

The opposite faults are `broken/budget_of_starts.py` (counts all starts) and `broken/poison.py`
(never gives up).
"""

from __future__ import annotations

import sys

import _shop as shop

from chaoskit import Scenario, probe

STARTS = 3


def main() -> None:
    """Charge by key; each charge that is done makes the budget whole again."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    starts = checkpoint.values.get("starts", 0)
    if starts >= STARTS:
        order = checkpoint.values.get("done", 0)
        reason = f"order {order} was begun {STARTS} times and never done: look into it"
        probe.refused(reason)
        sys.exit(reason)
    checkpoint.save(starts=starts + 1)
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1, starts=0)


RECEIVED = "kill@payments.charge#1.received"

scenario = Scenario(
    title="a retry budget counts the starts since the last progress",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    schedules=(
        f"{RECEIVED} / kill@payments.charge#2.received / {RECEIVED}",
        f"{RECEIVED} / {RECEIVED} / {RECEIVED}",
    ),
    refusals="allowed",  # three kills at one order look like poison: a person decides
    cases=("CTRL-3",),
)
