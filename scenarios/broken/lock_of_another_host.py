"""Missing: a way out. The lock was made on another host, where nobody can be asked any more."""

from __future__ import annotations

import os
import sys

import _shop as shop

from chaoskit import Change, Scenario


def main() -> None:
    """Charge by key, under a lock with the name of this host, which a dead process may leave."""
    lock = shop.STATE / "lock"
    host = os.environ["HOST_NAME"]
    if lock.exists() and lock.read_text(encoding="utf-8") != host:
        sys.exit("locked by another host")  # for how long? who may remove it?
    beside = shop.STATE / "lock.tmp"
    beside.write_text(host, encoding="utf-8")
    beside.replace(lock)
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)
    lock.unlink()


scenario = Scenario(
    title="the lock of a host that is gone blocks the run on every other one",
    task=main,
    env={"HOST_NAME": "one"},
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 2),
    changes={"moved": Change(env={"HOST_NAME": "two"}, right="either")},
    schedules=("kill@payments.charge#2.received / change:moved",),
    finds=("stuck",),
    cases=("STUCK-3",),
)
