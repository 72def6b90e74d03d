"""Missing: a second look. What was approved is paid, whatever has become of it meanwhile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import _shop as shop

from chaoskit import Change, Scenario, probe


def offer(folder: Path, seed: int) -> None:
    """The seller's price."""
    (folder / "price.json").write_text(json.dumps({"cents": 10_000}), encoding="utf-8")


def raise_the_price(folder: Path, env: Mapping[str, str]) -> None:
    """The seller wants more by now."""
    (folder / "price.json").write_text(json.dumps({"cents": 13_000}), encoding="utf-8")


def main() -> None:
    """Have the price approved, and pay it by key."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    if "approved" not in checkpoint.values:
        price = json.loads((shop.STATE / "price.json").read_text(encoding="utf-8"))
        checkpoint.save(approved=price["cents"])
        probe.point("approved")
    if "paid" not in checkpoint.values:  # is it still the price?
        buyer = {**shop.inputs()[0], "cents": checkpoint.values["approved"]}
        checkpoint.save(paid=services.charge(buyer, key="pay"))


scenario = Scenario(
    title="what was approved is paid after the price has changed",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 1),
    prepare=offer,
    changes={
        "price": Change(
            world=raise_the_price, right="refuse", matters=("payments.*",), finding="stale_world"
        )
    },
    schedules=("kill@approved#1 / change:price",),
    finds=("stale_world",),
    cases=("WORLD-1",),
)
