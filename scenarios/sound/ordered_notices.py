"""Order: what was interrupted is finished before anything later.

The opposite fault is `broken/late_notice.py`.
"""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario

STATES = ("ordered", "paid", "shipped")


def main() -> None:
    """Mail each state that is not known to be sent, in order, by key."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    [buyer] = shop.inputs()
    for state in STATES:
        if checkpoint.values.get(state) != "sent":
            checkpoint.save(**{state: "sending"})
            text = f"your order is {state}\n"
            services.send(buyer["email"], f"Order {state}", text, key=state)
            checkpoint.save(**{state: "sent"})


scenario = Scenario(
    title="notices of one order go out in its order, whatever was interrupted",
    task=main,
    services=("email",),
    inputs=lambda seed: shop.customers(seed, 1),
    cases=("WORLD-6",),
)
