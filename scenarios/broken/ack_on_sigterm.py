"""Missing: the job in hand at a deploy. The handler of SIGTERM counts it as done, and leaves."""

from __future__ import annotations

import signal
import sys

import _shop as shop

from chaoskit import Scenario, probe


def main() -> None:
    """Charge by key; a deploy asks this process to leave."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()

    def leave(number: int, frame: object) -> None:
        checkpoint.save(done=checkpoint.values["taken"])  # taken is not done
        sys.exit(0 if checkpoint.values["done"] == len(buyers) else 143)

    signal.signal(signal.SIGTERM, leave)
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        checkpoint.save(taken=number + 1)
        probe.point("job.taken")
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    services.send("owner@example.com", "All charged", "the month is closed\n", key="month")


scenario = Scenario(
    title="at a deploy the job in hand is acknowledged, and nobody does it",
    task=main,
    services=("payments", "email"),
    inputs=lambda seed: shop.customers(seed, 3),
    schedules=("stop:2000ms@job.taken#2",),
    finds=("lost_effect",),
    cases=("LOST-3", "LOST-4"),
)
