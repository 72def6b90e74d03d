"""Missing: one taker. An approval is looked at, and taken away when it has been used."""

from __future__ import annotations

import sys
from pathlib import Path

import _shop as shop

from chaoskit import Scenario


def approve(folder: Path, seed: int) -> None:
    """A person has said yes."""
    (folder / "approved").write_text("yes", encoding="utf-8")


def main() -> None:
    """Charge once, with an approval; what a dead process left over is looked up."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    if "done" in checkpoint.values:
        return
    approval = shop.STATE / "approved"
    if not approval.exists():
        sys.exit("this payment waits for an approval")
    begun = "begun" in checkpoint.values
    if not begun:
        checkpoint.save(begun=True)
    if not begun or services.find_charge("gated") is None:
        services.charge(shop.inputs()[0], reference="gated")
    checkpoint.save(done=True)
    approval.unlink(missing_ok=True)  # everybody who has seen it has used it


scenario = Scenario(
    title="each of several resumers uses the same approval",
    task=main,
    services=("payments",),
    settled=("payments.charge",),
    inputs=lambda seed: shop.customers(seed, 1),
    prepare=approve,
    schedules=(
        "kill@payments.charge#1.received / resumers:4 + late-reply:800ms@payments.charge.search#*",
    ),
    finds=("duplicate_effect",),
    cases=("TWO-11",),
)
