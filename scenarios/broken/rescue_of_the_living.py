"""Missing: proof of death. A run that takes long is handed to another process while it lives."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Intent, look-up where one is left over, charge; whoever is started goes to work."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    for number, customer in enumerate(shop.inputs()):
        order = f"order-{number}"
        if checkpoint.values.get(order) == "done":
            continue
        begun = order in checkpoint.values
        if not begun:
            checkpoint.save(**{order: "begun"})
        if not begun or services.find_charge(order) is None:
            services.charge(customer, reference=order)
        checkpoint.save(**{order: "done"})


scenario = Scenario(
    title="a run that takes long is begun by a second process while the first one lives",
    task=main,
    services=("payments",),
    settled=("payments.charge",),
    inputs=lambda seed: shop.customers(seed, 3),
    schedules=("late-reply:800ms@payments.charge#2 + twin@payments.charge#2.received",),
    finds=("duplicate_effect",),
    cases=("TWO-1", "TWO-2", "TWO-9", "DUP-10"),
)
