"""Missing: the end that a person wanted. What is not finished is begun again, cancelled or not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import _shop as shop

from chaoskit import Change, Scenario


def cancel(folder: Path, env: Mapping[str, str]) -> None:
    """What the user's command does: it asks the run to stop."""
    (folder / "cancel").touch()


def main() -> None:
    """Charge by key; a request to cancel is looked at between two charges."""
    (shop.STATE / "cancel").unlink(missing_ok=True)  # of an earlier life
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        if (shop.STATE / "cancel").exists():
            return
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="a run that was cancelled comes back to life when it is recovered",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    changes={"cancel": Change(world=cancel, right="stop")},
    schedules=("kill@payments.charge#2.received / change:cancel",),
    finds=("resurrected",),
    cases=("CTRL-1",),
)
