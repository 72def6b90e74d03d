"""Missing: a look at the marker. The intent is read, and not what says that it was carried out."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """One payment: an intent with its key, the charge, a marker."""
    services = shop.Shop()
    intent = shop.Checkpoint("intent.json")
    if "key" not in intent.values:
        intent.save(key="order-0")
    services.charge(shop.inputs()[0], key=intent.values["key"])
    shop.Checkpoint("done.json").save(charged=True)


scenario = Scenario(
    title="the only charge is asked for again although its marker was written",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 1),
    recorded=("done.json",),
    finds=("silent_restart",),
    cases=("REDO-3",),
)
