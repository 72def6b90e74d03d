"""One payment whose marker is looked at before anything is asked for.

The opposite fault is `broken/marker_unread.py`.
"""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """One payment: an intent with its key, the charge, a marker."""
    marker = shop.Checkpoint("done.json")
    if marker.values:
        return
    intent = shop.Checkpoint("intent.json")
    if "key" not in intent.values:
        intent.save(key="order-0")
    shop.Shop().charge(shop.inputs()[0], key=intent.values["key"])
    marker.save(charged=True)


scenario = Scenario(
    title="the only charge is not asked for again once its marker was written",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 1),
    recorded=("done.json",),
    cases=("REDO-3",),
)
