"""Missing: what was spent. Each resume begins with the whole budget."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario

BUDGET = 3


def main() -> None:
    """Ask the model, each time for ten cents, until the budget of this process is used up."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    asked = checkpoint.values.get("asked", 0)
    for _ in range(BUDGET):  # not: until asked == BUDGET
        question = {"name": f"question {asked}", "email": "model@example.com", "cents": 10}
        services.charge(question, key=f"question-{asked}")
        asked += 1
        checkpoint.save(asked=asked)
    services.send("owner@example.com", "Budget used up", "no answer yet\n", key="used-up")


scenario = Scenario(
    title="a budget holds for a process, not for the run",
    task=main,
    services=("payments", "email"),
    finds=("wrong_inputs",),
    cases=("CTRL-5",),
)
