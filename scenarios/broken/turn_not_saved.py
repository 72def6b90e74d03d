"""Missing: what the interrupted turn did. It is saved with its last words, which never came."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario, probe


def main() -> None:
    """Two turns of an assistant; the second one uses three tools before it has an answer."""
    services = shop.Shop()
    talk = shop.Checkpoint("talk.json")
    first, *others = shop.inputs()
    if "first" not in talk.values:
        services.charge(first, key="first")
        talk.save(first="I charged the first customer.")
    if "second" not in talk.values:
        for number, customer in enumerate(others):
            services.charge(customer, key=f"second-{number}")
        probe.point("tools.done")
        talk.save(second="And these are the others.")  # until here the turn is not in the history


scenario = Scenario(
    title="tools of an interrupted turn are not in the saved history, and run once per resume",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 4),
    schedules=("kill@tools.done#1 / kill@tools.done#1 / kill@tools.done#1",),
    finds=("redone_step",),
    cases=("REDO-3",),
)
