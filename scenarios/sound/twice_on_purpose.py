"""Two of the same: a customer who buys the same thing twice is charged twice, and not three times.

The opposite faults are `broken/coarse_key.py` (once) and `broken/fresh_key.py` (three times).
"""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge with a key made of run and step, the same in each attempt."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        services.charge(buyers[number], key=f"run-7/charge-{number}")
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="two identical purchases are two, in each attempt by the same two keys",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 2) * 2,
    cases=("KEY-1", "KEY-2"),
)
