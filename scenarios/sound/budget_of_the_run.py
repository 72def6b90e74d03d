"""A budget of the run: what was spent is in the checkpoint, before it is spent.

The opposite fault is `broken/fresh_budget.py`.
"""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario

BUDGET = 3


def main() -> None:
    """Ask the model, each time for ten cents, until the budget of the run is used up."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    for asked in range(checkpoint.values.get("asked", 0), BUDGET):
        question = {"name": f"question {asked}", "email": "model@example.com", "cents": 10}
        services.charge(question, key=f"question-{asked}")
        checkpoint.save(asked=asked + 1)
    services.send("owner@example.com", "Budget used up", "no answer yet\n", key="used-up")


scenario = Scenario(
    title="a budget holds for the run, over all of its attempts",
    task=main,
    services=("payments", "email"),
    cases=("CTRL-5",),
)
