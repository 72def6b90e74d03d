"""A second look: what the next step depends on is looked at again, and nothing else.

The opposite faults are `broken/stale_approval.py` (never looks) and a refusal at any change.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import _shop as shop

from chaoskit import Change, Scenario, probe


def offer(folder: Path, seed: int) -> None:
    """The seller's price, and what else there is."""
    (folder / "price.json").write_text(json.dumps({"cents": 10_000}), encoding="utf-8")
    (folder / "weather.json").write_text(json.dumps({"rain": True}), encoding="utf-8")


def raise_the_price(folder: Path, env: Mapping[str, str]) -> None:
    """The seller wants more by now."""
    (folder / "price.json").write_text(json.dumps({"cents": 13_000}), encoding="utf-8")


def clear_up(folder: Path, env: Mapping[str, str]) -> None:
    """Something that no step looks at is another thing now."""
    (folder / "weather.json").write_text(json.dumps({"rain": False}), encoding="utf-8")


def main() -> None:
    """Have the price approved, and pay it by key if it is still the price."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    price = json.loads((shop.STATE / "price.json").read_text(encoding="utf-8"))["cents"]
    if "approved" not in checkpoint.values:
        checkpoint.save(approved=price)
        probe.point("approved")
    if "paid" not in checkpoint.values:
        approved = checkpoint.values["approved"]
        if approved != price:
            reason = f"{approved} cents were approved, and the price is {price}: approve it again"
            probe.refused(reason)
            sys.exit(reason)
        buyer = {**shop.inputs()[0], "cents": approved}
        checkpoint.save(paid=services.charge(buyer, key="pay"))


scenario = Scenario(
    title="a changed price needs a new approval, and a change in the weather does not",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 1),
    prepare=offer,
    changes={
        "price": Change(world=raise_the_price, right="either", matters=("payments.*",)),
        "weather": Change(world=clear_up, right="go-on"),
    },
    schedules=(
        "kill@approved#1 / change:price",
        "kill@approved#1 / change:weather",
    ),
    cases=("WORLD-1",),
)
