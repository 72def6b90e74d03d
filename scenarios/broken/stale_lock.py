"""Missing: the lock's owner. A lock that a killed process left behind stops every resume."""

from __future__ import annotations

import sys

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge by key under a lock file that only a clean end removes."""
    lock = shop.STATE / "lock"
    if lock.exists():
        sys.exit("another run holds the lock")  # which one? is it alive?
    lock.touch()
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)
    lock.unlink()


scenario = Scenario(
    title="a lock file without an owner outlives the process that made it",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 10),
    finds=("stuck",),
    cases=("STUCK-1", "STUCK-2"),
)
