"""One owner: a lock that the kernel drops with its holder; who comes second is refused, and told.

The opposite faults are `broken/no_owner.py` (too lax) and `broken/stale_lock.py` (too strict).
"""

from __future__ import annotations

import fcntl
import os
import sys

import _shop as shop

from chaoskit import Scenario, probe


def main() -> None:
    """Charge by look-up, alone."""
    with (shop.STATE / "lock").open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            reason = f"process {lock.read()} holds this run"
            probe.refused(reason)
            sys.exit(reason)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        work()


def work() -> None:
    """Intent, look-up where one is left over, charge."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    for number, customer in enumerate(shop.inputs()):
        order = f"order-{number}"
        if checkpoint.values.get(order) == "done":
            continue
        begun = order in checkpoint.values
        checkpoint.save(**{order: "begun"})
        if not begun or services.find_charge(order) is None:
            services.charge(customer, reference=order)
        checkpoint.save(**{order: "done"})


scenario = Scenario(
    title="a lock that dies with its holder; a second process is refused and told by whom",
    task=main,
    services=("payments",),
    settled=("payments.charge",),
    inputs=lambda seed: shop.customers(seed, 3),
    schedules=(
        "kill@payments.charge#2.received / resumers:3 + late-reply:100ms@payments.charge.search#*",
        "late-reply:300ms@payments.charge#2 + twin@payments.charge#2.received",
        "kill@payments.charge#2.received / kill@payments.charge.search#1.applied",
    ),
    cases=("STUCK-1", "STUCK-2", "STUCK-4", "STUCK-6", "TWO-3", "TWO-10"),
)
