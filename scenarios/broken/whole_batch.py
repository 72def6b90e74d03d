"""Missing: what of the batch went out before it failed. The retry takes the batch as it was."""

from __future__ import annotations

import contextlib

import _shop as shop

from chaoskit import Scenario


def send(services: shop.Shop, batch: list[shop.Customer]) -> None:
    """Mail everybody in the batch; a resume asks first who has it already."""
    for customer in batch:
        services.send(customer["email"], *shop.receipt(customer), f"<{customer['email']}>")


def main() -> None:
    """One batch, tried again as a whole where it fails."""
    services = shop.Shop()
    batch = [c for c in shop.inputs() if services.find_mail(f"<{c['email']}>") is None]
    with contextlib.suppress(OSError):
        send(services, batch)
        return
    send(shop.Shop(), batch)  # also to those before the one that failed


scenario = Scenario(
    title="a batch in which one mail failed is sent again as a whole",
    task=main,
    services=("email",),
    settled=("email.send",),
    inputs=lambda seed: shop.customers(seed, 4),
    schedules=("lose-reply@email.send#3",),
    finds=("duplicate_effect",),
    cases=("DUP-5",),
)
