"""A count of attempts: a step that kills its process is given up after two, with a reason.

A crash elsewhere does not count. The opposite fault is `broken/poison.py`.
"""

from __future__ import annotations

import os
import signal
import sys

import _shop as shop

from chaoskit import Scenario, probe

TRIES = 2


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
            begun = checkpoint.values.get("parsing", 0)
            if begun == TRIES:
                reason = f"the parsing has killed its process {TRIES} times: mend its input"
                probe.refused(reason)
                sys.exit(reason)
            checkpoint.save(parsing=begun + 1)
            parse(again=begun > 0)
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="a step that kills its process is given up after two attempts",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    refusals="allowed",  # what it ran into is no trace of our kill: a person mends the input
    cases=("CTRL-3",),
)
