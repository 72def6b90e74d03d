"""Missing: the difference between fetched and sent. The cursor moves when a batch is read."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario

BATCH = 3


def main() -> None:
    """Mail in batches of three; the cursor is saved before the first mail of a batch."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for start in range(checkpoint.values.get("cursor", 0), len(buyers), BATCH):
        checkpoint.save(cursor=start + BATCH)  # fetched, not sent
        for customer in buyers[start : start + BATCH]:
            services.send(customer["email"], *shop.receipt(customer), key=customer["email"])
    services.send("owner@example.com", "Newsletter finished", "all of them\n", key="finished")


scenario = Scenario(
    title="the cursor of a mailing moves when a batch is fetched, not when it was sent",
    task=main,
    services=("email",),
    inputs=lambda seed: shop.customers(seed, 6),
    finds=("lost_effect",),
    cases=("LOST-1",),
)
