"""Two nets: a key while the service remembers it, a look-up for when it does not.

Either alone has a hole: `broken/look_up_too_soon.py` and `broken/key_for_a_day.py`. Together they
have one only where a charge is under way for longer than a key is kept.
"""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Intent, look-up where one is left over, charge with the stored key."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    for number, customer in enumerate(shop.inputs()):
        order = f"order-{number}"
        if checkpoint.values.get(order) == "done":
            continue
        begun = order in checkpoint.values
        checkpoint.save(**{order: "begun"})
        if not begun or services.find_charge(order) is None:
            services.charge(customer, key=order, reference=order)
        checkpoint.save(**{order: "done"})


scenario = Scenario(
    title="a charge has a key and can be looked up, and a resume uses both",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    schedules=(
        "kill@payments.charge#2.applied / clock:+7d",
        "kill@payments.charge#2.received / clock:+7d",
    ),
    cases=("DUP-3", "KEY-3"),
)
