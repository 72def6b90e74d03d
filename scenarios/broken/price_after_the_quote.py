"""Missing: what was promised. The quote is mailed, and what is charged is the price of that day."""

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
    """Mail a quote, and charge; a charge that is there already is found."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    (buyer,) = shop.inputs()
    probe.point("order.taken")
    price = json.loads((shop.STATE / "price.json").read_text(encoding="utf-8"))["cents"]
    if "mail" not in checkpoint.values:
        checkpoint.save(mail=f"{price} cents\n")
    services.send(buyer["email"], "Your quote", checkpoint.values["mail"], key="quote")
    if services.find_charge("pay") is None:
        services.charge({**buyer, "cents": price}, reference="pay")  # is it what was quoted?


scenario = Scenario(
    title="a price that rises after the quote was mailed is charged",
    task=main,
    services=("payments", "email"),
    settled=("payments.charge",),
    redo=("email.send",),
    inputs=lambda seed: shop.customers(seed, 1),
    prepare=offer,
    changes={"price": Change(world=raise_the_price, right="go-on", after="email.send")},
    finds=("wrong_inputs",),
    cases=("WORLD-1",),
)
