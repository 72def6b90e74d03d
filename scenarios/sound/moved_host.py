"""Another host's lock: nobody can prove from here that its holder is dead, so a person is asked.

The opposite faults are `broken/lock_of_another_host.py` (blocks for ever, without a word) and
`broken/no_owner.py` (takes it over).
"""

from __future__ import annotations

import os
import sys

import _shop as shop

from chaoskit import Change, Scenario, probe


def main() -> None:
    """Charge by key, under a lock that says whose it is and how it is given up."""
    lock = shop.STATE / "lock"
    host = os.environ["HOST_NAME"]
    holder = lock.read_text(encoding="utf-8") if lock.exists() else host
    if holder != host:
        reason = f"host {holder} holds this run: when it is dead for sure, remove {lock.name}"
        probe.refused(reason)
        sys.exit(reason)
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
    title="the lock of another host is refused with the way to give it up",
    task=main,
    env={"HOST_NAME": "one"},
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 2),
    changes={"moved": Change(env={"HOST_NAME": "two"}, right="either")},
    schedules=("kill@payments.charge#2.received / change:moved",),
    cases=("STUCK-3",),
)
