"""Missing: an owner. Nothing keeps two processes from resuming the same run."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Intent, look-up where one is left over, charge; right as long as it is alone."""
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
    title="two processes resume the same run, and nothing keeps them apart",
    task=main,
    services=("payments",),
    settled=("payments.charge",),
    inputs=lambda seed: shop.customers(seed, 3),
    schedules=(
        "kill@payments.charge#2.received / resumers:2 + late-reply:800ms@payments.charge.search#*",
    ),
    finds=("duplicate_effect",),
    cases=("TWO-3", "TWO-10"),
)
