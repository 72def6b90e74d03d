"""Missing: a fence. Whoever was taken for dead wakes up and goes on where it was."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario, probe


def main() -> None:
    """Mail everybody; a mail that goes out twice does no harm, one by a stranger does."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        probe.point("step.begun")
        services.send(buyers[number]["email"], *shop.receipt(buyers[number]))
        checkpoint.save(done=number + 1)  # over the record of whoever has taken over


scenario = Scenario(
    title="a process that was taken for dead wakes up and goes on",
    task=main,
    services=("email",),
    contract={"email.send": "at-least-once"},
    inputs=lambda seed: shop.customers(seed, 3),
    schedules=("pause@step.begun#2",),
    finds=("stale_writer",),
    cases=("TWO-4", "TWO-8"),
)
