"""Missing: a look-up after each crash. The second resume believes what the first one looked at."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Intent, look-up where one is left over, charge; it is looked up once, not for ever."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    for number, customer in enumerate(shop.inputs()):
        order = f"order-{number}"
        phase = checkpoint.values.get(order)
        if phase == "done":
            continue
        found = services.find_charge(order) if phase == "begun" else None
        checkpoint.save(**{order: "begun" if phase is None else "looked up"})
        if found is None:
            services.charge(customer, reference=order)
        checkpoint.save(**{order: "done"})


scenario = Scenario(
    title="a step that was cut short twice is looked up after the first time only",
    task=main,
    services=("payments",),
    settled=("payments.charge",),
    inputs=lambda seed: shop.customers(seed, 3),
    schedules=("kill@payments.charge#2.received / kill@payments.charge#1.applied",),
    finds=("duplicate_effect",),
    cases=("DUP-9",),
)
