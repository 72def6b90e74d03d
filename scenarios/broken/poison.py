"""Missing: a count of attempts. A step that kills its process is begun again by each resume."""

from __future__ import annotations

import os
import signal

import _shop as shop

from chaoskit import Scenario


def parse(*, again: bool) -> None:
    """Native code that does not survive its own leftovers."""
    if again:
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Charge by key; before the second charge something is parsed."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        if number == 1:
            begun = "parsing" in checkpoint.values
            checkpoint.save(parsing=True)
            parse(again=begun)  # how often was it begun?
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="a step that kills its own process is tried for ever",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    finds=("stuck",),
    cases=("CTRL-3",),
)
