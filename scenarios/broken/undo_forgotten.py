"""Missing: what the undoing needs. Only the first process knows which charges to give back."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge three, fail, give everything back, and say so."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    charged: dict[str, int] = {}
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        made = services.charge(buyers[number], key=f"order-{number}")
        charged[made] = buyers[number]["cents"]  # not in the checkpoint
        checkpoint.save(done=number + 1)
    for number, (made, cents) in enumerate(charged.items()):  # it cannot be delivered
        services.refund(made, cents, key=f"refund-{number}")
    services.send("owner@example.com", "Order cancelled", "all was refunded\n", key="cancelled")


scenario = Scenario(
    title="the charges to be refunded are known only to the process that made them",
    task=main,
    services=("payments", "email"),
    inputs=lambda seed: shop.customers(seed, 3),
    finds=("lost_effect",),
    cases=("HALF-4",),
)
