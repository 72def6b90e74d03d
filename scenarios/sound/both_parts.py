"""A control: the task without its checkpoint says what is right, and the task does the same.

The opposite fault is `broken/second_sender_silent.py`.
"""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge everybody by key, then mail everybody by key; each part has its own record."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("charged", 0), len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(charged=number + 1)
    for number in range(checkpoint.values.get("mailed", 0), len(buyers)):
        services.send(buyers[number]["email"], "paid", "thanks", key=f"mail-{number}")
        checkpoint.save(mailed=number + 1)


def one_at_a_time() -> None:
    """The same work without a checkpoint."""
    services = shop.Shop()
    for number, buyer in enumerate(shop.inputs()):
        services.charge(buyer, key=f"order-{number}")
    for number, buyer in enumerate(shop.inputs()):
        services.send(buyer["email"], "paid", "thanks", key=f"mail-{number}")


scenario = Scenario(
    title="two parts with a record each, held against a control without any",
    task=main,
    control=one_at_a_time,
    services=("payments", "email"),
    inputs=lambda seed: shop.customers(seed, 2),
    expect={"payments.charge": 2, "email.*": 2},
    cases=("LOST-10",),
)
