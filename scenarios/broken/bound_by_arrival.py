"""Missing: the step in the result's name. Results are kept in the order in which they came."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario, probe


def main() -> None:
    """Work out all offers, the largest first, then mail them in the order of the list."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    offers: dict[str, str] = {}
    if "offers" not in checkpoint.values:
        for customer in sorted(buyers, key=lambda buyer: -buyer["cents"]):
            offers[customer["email"]] = f"{customer['name']}, {customer['cents']} cents off\n"
        checkpoint.save(offers=list(offers.values()))  # whose is which?
        probe.point("offers.saved")
    else:
        emails = (customer["email"] for customer in buyers)
        offers = dict(zip(emails, checkpoint.values["offers"], strict=True))
    for customer in buyers:
        to = customer["email"]
        if to not in checkpoint.values:
            services.send(to, "Our offer", offers[to])
            checkpoint.save(**{to: "sent"})


scenario = Scenario(
    title="results are kept in the order of their arrival and dealt out in another one",
    task=main,
    services=("email",),
    contract={"email.send": "at-least-once"},
    inputs=lambda seed: shop.customers(seed, 3),
    schedules=("kill@offers.saved#1",),
    finds=("wrong_binding",),
    cases=("INPUT-3",),
)
