"""A child that ended well after its parent was killed has left an exit file: it is not run again.

The opposite fault is `broken/exit_file_unread.py`.
"""

from __future__ import annotations

import os

import _shop as shop

from chaoskit import Scenario


def child(number: int) -> None:
    """Charge by key, and leave an exit file, whole or not at all."""
    shop.Shop().charge(shop.inputs()[number], key=f"order-{number}")
    beside = shop.STATE / f"new-{number}"
    beside.write_text("0", encoding="utf-8")
    beside.replace(shop.STATE / f"exit-{number}")


def main() -> None:
    """A child for each charge that has no exit file yet."""
    for number in range(len(shop.inputs())):
        if (shop.STATE / f"exit-{number}").exists():
            continue
        if os.fork() == 0:
            child(number)
            os._exit(0)
        os.wait()


scenario = Scenario(
    title="a child that ended well after its parent was killed is not run again",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    schedules=("kill-leader@payments.charge#2.received",),
    cases=("REDO-2",),
)
