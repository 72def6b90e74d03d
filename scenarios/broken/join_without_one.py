"""Missing: the difference between skipped and under way. The join runs without one of its parts."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Look up two prices, one after the other, and mail both in one mail."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    left, right = shop.inputs()
    for name, customer in (("left", left), ("right", right)):
        if name not in checkpoint.values:  # what has begun is not ready to begin
            checkpoint.save(**{name: None})
            services.find_charge(name)
            checkpoint.save(**{name: customer["cents"]})
    ready = [checkpoint.values[name] for name in ("left", "right")]
    parts = " and ".join(str(part) for part in ready if part is not None)
    services.send("owner@example.com", "Both prices", f"{parts}\n", key=f"join-{parts}")


scenario = Scenario(
    title="a join takes a part that was under way for one that was skipped",
    task=main,
    services=("payments", "email"),
    inputs=lambda seed: shop.customers(seed, 2),
    finds=("wrong_inputs",),
    cases=("REDO-6",),
)
