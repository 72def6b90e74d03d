"""The quote is stored before it is mailed, and what was quoted is charged.

Before the mail another price is simply the price. The opposite fault is
`broken/price_after_the_quote.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import _shop as shop

from chaoskit import Change, Scenario, probe


def offer(folder: Path, seed: int) -> None:
    """The price of today."""
    (folder / "price.json").write_text(json.dumps({"cents": 10_000}), encoding="utf-8")


def raise_the_price(folder: Path, env: Mapping[str, str]) -> None:
    """The price of tomorrow."""
    (folder / "price.json").write_text(json.dumps({"cents": 13_000}), encoding="utf-8")


def main() -> None:
    """Mail a quote, and charge."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    (buyer,) = shop.inputs()
    probe.point("order.taken")
    if "quote" not in checkpoint.values:
        price = json.loads((shop.STATE / "price.json").read_text(encoding="utf-8"))["cents"]
        checkpoint.save(quote=price)
    quote = checkpoint.values["quote"]
    if "mailed" not in checkpoint.values:
        services.send(buyer["email"], "Your quote", f"{quote} cents\n", key="quote")
        checkpoint.save(mailed=True)
    services.charge({**buyer, "cents": quote}, key="pay")


scenario = Scenario(
    title="a price that rises after the quote was mailed does not count",
    task=main,
    services=("payments", "email"),
    inputs=lambda seed: shop.customers(seed, 1),
    prepare=offer,
    changes={"price": Change(world=raise_the_price, right="go-on", after="email.send")},
    cases=("WORLD-1",),
)
