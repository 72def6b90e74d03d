"""A deploy: SIGTERM is a wish to end after the job in hand, and SIGKILL may come all the same.

The opposite fault is `broken/ack_on_sigterm.py`.
"""

from __future__ import annotations

import signal
import sys

import _shop as shop

from chaoskit import Scenario, probe


def main() -> None:
    """Charge by key; leave between two charges where that is asked for."""
    leaving: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: leaving.append(number))
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        if leaving:
            sys.exit(143)
        probe.point("job.taken")
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)
    services.send("owner@example.com", "All charged", "the month is closed\n", key="month")


scenario = Scenario(
    title="at a deploy the job in hand is finished, and the rest is left to the successor",
    task=main,
    services=("payments", "email"),
    inputs=lambda seed: shop.customers(seed, 3),
    schedules=("stop:2000ms@job.taken#2", "stop:2000ms@payments.charge#2.received"),
    cases=("LOST-3", "LOST-4", "CTRL-2"),
)
