"""Missing: a way back. What a kill leaves behind is taken for damage, and refused for ever.

The opposite fix is `sound/one_owner.py`: a lock that is gone with its holder.
"""

from __future__ import annotations

import sys

import _shop as shop

from chaoskit import Scenario, probe


def main() -> None:
    """Charge by key; a mark that only a clean end removes says that somebody is at work."""
    mark = shop.STATE / "working"
    if mark.exists():
        reason = f"{mark.name} is there: another run is at work, or has ended badly"
        probe.refused(reason)
        sys.exit(reason)
    mark.touch()
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)
    mark.unlink()


scenario = Scenario(
    title="what a kill leaves behind is refused at each resume, with a reason",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 4),
    finds=("stuck",),
    cases=("STUCK-1",),
)
