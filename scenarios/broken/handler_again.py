"""Missing: a record of the error handler. The step failed for good, and its handler runs again."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def ship(customer: shop.Customer) -> None:
    """A step that cannot be done."""
    raise LookupError(f"no address of {customer['name']}")


def main() -> None:
    """Charge, try to ship, tell the customer that it failed, give the money back; all by key."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    [buyer] = shop.inputs()
    if "charge" not in checkpoint.values:
        checkpoint.save(charge=services.charge(buyer, key="charge"))
    try:
        ship(buyer)
    except LookupError as failed:
        text = f"{failed}\n"
        services.send(buyer["email"], "We could not deliver", text, key="failed")  # not recorded
    services.refund(checkpoint.values["charge"], buyer["cents"], key="refund")


scenario = Scenario(
    title="an error handler has no record of its own and runs again on resume",
    task=main,
    services=("payments", "email"),
    inputs=lambda seed: shop.customers(seed, 1),
    finds=("redone_step",),
    cases=("REDO-8",),
)
