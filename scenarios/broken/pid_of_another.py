"""Missing: proof that the owner lives. Some process has the number in the lock, so it is held."""

from __future__ import annotations

import os
import sys

import _shop as shop

from chaoskit import Scenario


def alive(pid: int) -> bool:
    """Whether a process has this number; which one is not asked."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def main() -> None:
    """Charge by key, under a lock with a process number, that of the wrapper that started us."""
    lock = shop.STATE / "lock"
    if lock.exists() and alive(int(lock.read_text(encoding="utf-8"))):
        sys.exit("another run holds the lock")
    beside = shop.STATE / "lock.tmp"
    beside.write_text(str(os.getppid()), encoding="utf-8")
    beside.replace(lock)
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)
    lock.unlink()


scenario = Scenario(
    title="a live process with the number in the lock is taken for its owner",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 2),
    finds=("stuck",),
    cases=("STUCK-4",),
)
