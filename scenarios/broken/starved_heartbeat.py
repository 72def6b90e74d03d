"""Missing: a heart that beats while the step waits. Busy is taken for dead, and replaced."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Intent, look-up where one is left over, charge; a beat before each step, none within it."""
    heart = shop.Checkpoint("heart.json")
    if heart.values != shop.Checkpoint("heart.json").values:
        return  # it has moved between two looks: somebody is alive
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    for number, customer in enumerate(shop.inputs()):
        order = f"order-{number}"
        if checkpoint.values.get(order) == "done":
            continue
        heart.save(beat=number)
        begun = order in checkpoint.values
        if not begun:
            checkpoint.save(**{order: "begun"})
        if not begun or services.find_charge(order) is None:
            services.charge(customer, reference=order)
        checkpoint.save(**{order: "done"})


scenario = Scenario(
    title="a process that waits for a long step does not beat, and is taken for dead",
    task=main,
    services=("payments",),
    settled=("payments.charge",),
    inputs=lambda seed: shop.customers(seed, 3),
    schedules=("late-reply:800ms@payments.charge#2 + twin@payments.charge#2.received",),
    finds=("duplicate_effect",),
    cases=("TWO-5",),
)
