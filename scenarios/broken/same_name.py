"""Missing: a token that grows. The owner is compared by its name, and both have the same one."""

from __future__ import annotations

import sys

import _shop as shop

from chaoskit import Scenario, probe

WORKER = "worker-1"
"""From the deployment's settings, so that a successor has it too."""


def owned() -> bool:
    """Whether the run is ours; asked again before each step."""
    return shop.Checkpoint("owner.json").values.get("owner") == WORKER


def main() -> None:
    """Mail everybody as long as the run is ours; a mail that goes out twice does no harm."""
    shop.Checkpoint("owner.json").save(owner=WORKER)
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        probe.point("step.begun")
        if not owned():
            sys.exit("somebody else has taken over")
        services.send(buyers[number]["email"], *shop.receipt(buyers[number]))
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="the owner of a run is known by a name that its successor has, too",
    task=main,
    services=("email",),
    contract={"email.send": "at-least-once"},
    inputs=lambda seed: shop.customers(seed, 3),
    schedules=("pause@step.begun#2",),
    finds=("stale_writer",),
    cases=("TWO-12",),
)
