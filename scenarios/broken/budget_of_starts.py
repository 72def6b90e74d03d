"""Missing: what a budget is for. Each start counts as a failure of the item in hand."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario

STARTS = 3


def main() -> None:
    """Charge by key; after three starts the item in hand is taken for poison, and passed over."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    done, starts = (checkpoint.values.get(name, 0) for name in ("done", "starts"))
    checkpoint.save(starts=starts + 1)
    if starts >= STARTS and done < len(buyers):  # has it come no further since?
        checkpoint.save(done=done + 1)
        done += 1
    for number in range(done, len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)


RECEIVED = "kill@payments.charge#1.received"

scenario = Scenario(
    title="a retry budget counts starts, so the fourth one passes over an item",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    schedules=(f"{RECEIVED} / kill@payments.charge#2.received / {RECEIVED}",),
    finds=("lost_effect",),
    cases=("CTRL-3",),
)
