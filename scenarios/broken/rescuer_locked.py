"""Missing: an owner of the rescuer's lock. Whoever clears a dead run's lock may die at it."""

from __future__ import annotations

import os
import sys

import _shop as shop

from chaoskit import Scenario, probe


def rescue() -> None:
    """Clear the lock of a dead run, one rescuer at a time."""
    mine = shop.STATE / "rescue.lock"
    if mine.exists():
        sys.exit("a rescue is already under way")  # by whom?
    mine.touch()
    probe.point("rescue.begun")
    (shop.STATE / "lock").unlink()
    mine.unlink()


def main() -> None:
    """Charge by key, under a lock that a resume clears when its owner is dead."""
    lock = shop.STATE / "lock"
    if lock.exists():
        rescue()  # a trial has one run at a time, so its owner is dead
    beside = shop.STATE / "lock.tmp"
    beside.write_text(str(os.getpid()), encoding="utf-8")
    beside.replace(lock)
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)
    lock.unlink()


scenario = Scenario(
    title="the lock under which a dead run is rescued has no owner itself",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    schedules=("kill@payments.charge#2.received / kill@rescue.begun#1",),
    finds=("stuck",),
    cases=("LOST-8",),
)
