"""Missing: the tools. They are looked for when a process starts; what is not there is not used."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def tools(services: shop.Shop) -> set[str]:
    """What can be used now."""
    try:
        services.find_mail("<ping>")
    except (OSError, RuntimeError):
        return {"charge"}
    return {"charge", "mail"}


def main() -> None:
    """For each customer a mail and a charge, by key, as far as there is a tool for it."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    there = tools(services)
    services = shop.Shop()
    for customer in shop.inputs():
        for tool in ("mail", "charge"):
            step = f"{tool}-{customer['email']}"
            if step in checkpoint.values or tool not in there:
                continue
            if tool == "mail":
                services.send(customer["email"], *shop.receipt(customer), key=step)
            else:
                services.charge(customer, key=step)
            checkpoint.save(**{step: "done"})


scenario = Scenario(
    title="a tool that was not there yet when the task resumed is never used",
    task=main,
    services=("payments", "email"),
    inputs=lambda seed: shop.customers(seed, 2),
    schedules=("kill@payments.charge#1.received / down:1@email.*#*",),
    finds=("lost_effect",),
    cases=("CODE-6",),
)
