"""Missing: a repair that was ever tried. The way out of a kill fails on what a kill leaves."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario, probe


def repair() -> None:
    """Remove the files that are marked as incomplete, and the marks."""
    for mark in sorted(shop.STATE.glob("*.incomplete")):
        mark.with_suffix("").unlink()  # and if it was never begun?
        mark.unlink()


def main() -> None:
    """Write three files, each of them marked while it is incomplete."""
    repair()
    for customer in shop.inputs():
        file = shop.STATE / customer["email"]
        mark = shop.STATE / f"{customer['email']}.incomplete"
        if not file.exists():
            mark.touch()
            probe.point("marked")
            file.write_text(customer["name"], encoding="utf-8")
            mark.unlink()


scenario = Scenario(
    title="the repair of incomplete files fails on what a kill leaves behind",
    task=main,
    inputs=lambda seed: shop.customers(seed, 3),
    outputs=("*@example.com",),
    schedules=("kill@marked#2",),
    finds=("stuck",),
    cases=("STUCK-7",),
)
