"""An unknown outcome: no key, no look-up, so a person must say what came of the step.

The opposite faults are `broken/no_effect_ids.py` (repeats), `broken/sending_is_failed.py` (gives
up) and `broken/pending_blocks.py` (cannot be settled).
"""

from __future__ import annotations

import sys

import _shop as shop

from chaoskit import Scenario, probe


def main() -> None:
    """Intent, charge, completion; what was under way at a kill is named."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    for number, customer in enumerate(shop.inputs()):
        step = f"charge-{number}"
        if checkpoint.values.get(step) == "begun":
            reason = "killed while the charge was under way, and it cannot be looked up"
            probe.unknown_outcome(step, reason)
            sys.exit(f"{step}: {reason}; write done or delete it in {shop.STATE.name}")
        if step not in checkpoint.values:
            checkpoint.save(**{step: "begun"})
            services.charge(customer)
            checkpoint.save(**{step: "done"})


scenario = Scenario(
    title="a charge that cannot be looked up is named, not repeated and not skipped",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    cases=("CTRL-6", "WORLD-5", "STUCK-8"),
)
