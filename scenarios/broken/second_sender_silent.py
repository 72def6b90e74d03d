"""Missing: a look at what there is to do. The second part takes its items from the first part's
loop, finds them used up, and does nothing: in every run, so that only a control tells.

The opposite is `sound/both_parts.py`.
"""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge everybody by key, then mail everybody; the list is an iterator."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    waiting = iter(list(enumerate(shop.inputs()))[checkpoint.values.get("done", 0) :])
    for number, buyer in waiting:
        services.charge(buyer, key=f"order-{number}")
        checkpoint.save(done=number + 1)
    for number, buyer in waiting:  # none is left
        services.send(buyer["email"], "paid", "thanks", key=f"mail-{number}")


def one_at_a_time() -> None:
    """The same work without a checkpoint and without a loop over both."""
    services = shop.Shop()
    for number, buyer in enumerate(shop.inputs()):
        services.charge(buyer, key=f"order-{number}")
    for number, buyer in enumerate(shop.inputs()):
        services.send(buyer["email"], "paid", "thanks", key=f"mail-{number}")


scenario = Scenario(
    title="the second part of the task does nothing in any run, as its control shows",
    task=main,
    control=one_at_a_time,
    services=("payments", "email"),
    inputs=lambda seed: shop.customers(seed, 2),
    finds=("false_success",),
    cases=("LOST-10",),
)
