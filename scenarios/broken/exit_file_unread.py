"""Missing: a look at how a child ended. Its parent died first, and runs it again."""

from __future__ import annotations

import os

import _shop as shop

from chaoskit import Scenario


def child(number: int) -> None:
    """Charge by key, and leave an exit file."""
    shop.Shop().charge(shop.inputs()[number], key=f"order-{number}")
    (shop.STATE / f"exit-{number}").write_text("0", encoding="utf-8")


def main() -> None:
    """A child for each charge; what the parent records of it, it has waited for."""
    checkpoint = shop.Checkpoint()
    for number in range(checkpoint.values.get("done", 0), len(shop.inputs())):
        if os.fork() == 0:
            child(number)
            os._exit(0)
        os.wait()
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="a child that ended well after its parent was killed is run again",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    schedules=("kill-leader@payments.charge#2.received",),
    finds=("redone_step",),
    cases=("REDO-2",),
)
