"""A fence: the owner has a number that grows, and looks at it before each step.

What it cannot close without the service's help is the moment between the look and the effect; the
mail is therefore one that may go out twice. The opposite fault is `broken/same_name.py`.
"""

from __future__ import annotations

import sys

import _shop as shop

from chaoskit import Scenario, probe


def main() -> None:
    """Take the run over, and mail everybody as long as nobody else has."""
    owner = shop.Checkpoint("owner.json")
    token = owner.values.get("token", 0) + 1
    owner.save(token=token)
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        probe.point("step.begun")
        if shop.Checkpoint("owner.json").values["token"] != token:
            reason = f"another process has taken over after number {token}"
            probe.refused(reason)
            sys.exit(reason)
        services.send(buyers[number]["email"], *shop.receipt(buyers[number]))
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="a process that was taken for dead wakes up, sees a newer number, and stops",
    task=main,
    services=("email",),
    contract={"email.send": "at-least-once"},
    inputs=lambda seed: shop.customers(seed, 3),
    schedules=("pause@step.begun#1", "pause@step.begun#2", "pause@step.begun#3"),
    cases=("TWO-4", "TWO-12"),
)
