"""A cancel that lasts: it is looked at before each step, and nothing ever takes it back.

The opposite fault is `broken/cancel_forgotten.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import _shop as shop

from chaoskit import Change, Scenario, probe


def cancel(folder: Path, env: Mapping[str, str]) -> None:
    """What the user's command does."""
    (folder / "cancel").touch()


def main() -> None:
    """Charge by key until somebody wants an end."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        if (shop.STATE / "cancel").exists():
            reason = f"cancelled with {number} of {len(buyers)} charges made"
            probe.refused(reason)
            sys.exit(reason)
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="a cancelled run stays cancelled, a killed one goes on",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    changes={"cancel": Change(world=cancel, right="stop")},
    cases=("CTRL-1",),
)
