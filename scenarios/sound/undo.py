"""Undoing that can be resumed: what is to be given back is in the checkpoint, and what was, too.

The opposite fault is `broken/undo_forgotten.py`.
"""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge three, fail, give everything back by key, and say so."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    made = checkpoint.values.get("made", [])
    for number in range(len(made), len(buyers)):
        made = [*made, services.charge(buyers[number], key=f"order-{number}")]
        checkpoint.save(made=made)
    for number in range(checkpoint.values.get("refunded", 0), len(made)):  # it cannot be delivered
        services.refund(made[number], buyers[number]["cents"], key=f"refund-{number}")
        checkpoint.save(refunded=number + 1)
    if "told" not in checkpoint.values:
        text = "all was refunded\n"
        told = services.send("owner@example.com", "Order cancelled", text, key="cancelled")
        checkpoint.save(told=told)


scenario = Scenario(
    title="each charge is given back once, however often the undoing is killed",
    task=main,
    services=("payments", "email"),
    inputs=lambda seed: shop.customers(seed, 3),
    cases=("HALF-4",),
)
