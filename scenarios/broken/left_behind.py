"""Missing: an end for its helpers. A process that the task started goes on without it."""

from __future__ import annotations

import subprocess

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge by key, with a helper in the background that nobody stops."""
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="a helper process outlives the task",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 1),
    finds=("leftover_process",),
    cases=("TWO-13",),
)
