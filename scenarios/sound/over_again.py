"""Over again on purpose: where once more does no harm, a task needs no checkpoint.

Too strict a judge would call it `silent_restart`; the scenario says that it may.
"""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge by key and write a file, from the first customer on, in each attempt."""
    services = shop.Shop()
    for customer in shop.inputs():
        services.charge(customer, key=customer["email"])
        beside = shop.STATE / "report.tmp"
        beside.write_text(f"charged {customer['name']}\n", encoding="utf-8")
        beside.replace(shop.STATE / f"{customer['email']}.txt")


scenario = Scenario(
    title="a task that may begin again at its first step each time",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    outputs=("*.txt",),
    redo=("payments.charge",),
    cases=("REDO-4",),
)
