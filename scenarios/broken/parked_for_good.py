"""Missing: a word to somebody. A run of another version is left alone, and that is a success."""

from __future__ import annotations

import os

import _shop as shop

from chaoskit import Change, Scenario


def main() -> None:
    """Charge by key, if this is the version that began the run."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    version = os.environ["VERSION"]
    if checkpoint.values.setdefault("version", version) != version:
        return  # not ours
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="a run that another version began is skipped, and nobody is told",
    task=main,
    env={"VERSION": "1"},
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    changes={"deploy": Change(env={"VERSION": "2"}, right="go-on")},
    schedules=("kill@payments.charge#2.received / change:deploy",),
    finds=("false_success",),
    cases=("CODE-2",),
)
