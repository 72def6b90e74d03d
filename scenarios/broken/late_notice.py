"""Missing: is it still wanted? A rescued notice goes out after the one that has replaced it."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario

STATES = ("ordered", "paid", "shipped")


def main() -> None:
    """Mail each new state, by key; what a dead process was at is rescued when all else is done."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    [buyer] = shop.inputs()
    fresh = [state for state in STATES if state not in checkpoint.values]
    rescued = [state for state, phase in checkpoint.values.items() if phase == "sending"]
    for state in fresh + rescued:
        checkpoint.save(**{state: "sending"})
        text = f"your order is {state}\n"
        services.send(buyer["email"], f"Order {state}", text, key=state)
        checkpoint.save(**{state: "sent"})


scenario = Scenario(
    title="a rescued notice of an old state goes out after that of a newer one",
    task=main,
    services=("email",),
    inputs=lambda seed: shop.customers(seed, 1),
    finds=("out_of_order_effect",),
    cases=("WORLD-6",),
)
