"""Missing: an approval that outlives its use. It is deleted before what it approves is done."""

from __future__ import annotations

import sys
from pathlib import Path

import _shop as shop

from chaoskit import Scenario


def approve(folder: Path, seed: int) -> None:
    """A person has said yes to the second payment."""
    (folder / "approved").write_text("yes", encoding="utf-8")


def main() -> None:
    """Charge twice by key; the second time only with an approval, which is good for one use."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    first, second = shop.inputs()
    if "first" not in checkpoint.values:
        services.charge(first, key="first")
        checkpoint.save(first=True)
    if "second" not in checkpoint.values:
        approval = shop.STATE / "approved"
        if not approval.exists():
            sys.exit("the second payment waits for an approval")
        approval.unlink()  # used up, and nothing has come of it yet
        services.charge(second, key="second")
        checkpoint.save(second=True)


scenario = Scenario(
    title="an approval is used up before the outcome is durable",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 2),
    prepare=approve,
    finds=("stuck",),
    cases=("TWO-11",),
)
