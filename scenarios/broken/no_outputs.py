"""Missing: the step's result. What an earlier step found out died with its process."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """First add up what is owed, then tell each customer the total; the total is not stored."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    total = None
    if not checkpoint.values.get("added"):
        total = sum(customer["cents"] for customer in buyers)
        checkpoint.save(added=True)  # that it was done, not what came of it
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        text = f"{buyers[number]['name']}, together you owe {total} cents\n"
        services.send(buyers[number]["email"], "What you owe", text)
        checkpoint.save(done=number + 1)


scenario = Scenario(
    title="a step is recorded without its result, and the next one uses None",
    task=main,
    services=("email",),
    contract={"email.send": "at-least-once"},
    inputs=lambda seed: shop.customers(seed, 20)[:10],
    finds=("wrong_inputs",),
    cases=("REDO-2", "TORN-8"),
)
