"""Missing: time. A resume looks the charge up while it is still on its way, and finds nothing."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Intent, look-up where one is left over, charge, completion; and no key."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    for number, customer in enumerate(shop.inputs()):
        order = f"order-{number}"
        if checkpoint.values.get(order) == "done":
            continue
        begun = order in checkpoint.values
        checkpoint.save(**{order: "begun"})
        if not begun or services.find_charge(order) is None:  # not yet there, or never?
            services.charge(customer, reference=order)
        checkpoint.save(**{order: "done"})


scenario = Scenario(
    title="a charge is looked up while it is still on its way",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    finds=("duplicate_effect",),
    cases=("DUP-3",),
)
