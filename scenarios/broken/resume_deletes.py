"""Missing: a checkpoint while it is replaced. A resume deletes the old one before it has a new."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario, probe


def main() -> None:
    """Charge by key; a resume begins with a clean folder."""
    services = shop.Shop()
    done = shop.Checkpoint().values.get("done", 0)
    (shop.STATE / "checkpoint.json").unlink(missing_ok=True)
    probe.point("resume.prepared")  # killed here, the second resume finds nothing
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(done, len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="a resume deletes the checkpoint before it has made another one",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 4),
    schedules=("kill@payments.charge#3.received / kill@resume.prepared#1",),
    finds=("silent_restart",),
    cases=("TORN-10",),
)
