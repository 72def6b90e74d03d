"""Missing: what earlier processes did. An interrupt saves what this one knows, over all else."""

from __future__ import annotations

import json
import signal
import sys

import _shop as shop

from chaoskit import Scenario, probe

mine: list[str] = []


def interrupted(number: int, frame: object) -> None:
    """Save and leave: the steps of this process, which is not all of them."""
    (shop.STATE / "done.json").write_text(json.dumps(mine), encoding="utf-8")
    sys.exit(130)


def main() -> None:
    """Charge by key; Ctrl-C is welcome at any time."""
    signal.signal(signal.SIGINT, interrupted)
    file = shop.STATE / "done.json"
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    services = shop.Shop()
    for customer in shop.inputs():
        probe.point("step.begun")
        step = customer["email"]
        if step in known:
            continue
        services.charge(customer, key=step)
        mine.append(step)
        beside = file.with_suffix(".tmp")
        beside.write_text(json.dumps(known + mine), encoding="utf-8")
        beside.replace(file)


scenario = Scenario(
    title="an interrupt saves the steps of this process over those of all others",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 5),
    schedules=("kill@payments.charge#3.received / interrupt:2000ms@step.begun#5",),
    finds=("redone_step",),
    cases=("TORN-13",),
)
