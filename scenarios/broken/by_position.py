"""Missing: the step's name. Records are counted, and a deploy has removed a step before them."""

from __future__ import annotations

from collections.abc import Sequence

import _shop as shop

from chaoskit import Change, Scenario


def work(steps: Sequence[str]) -> None:
    """Mail each step by key; the checkpoint holds how many were done."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    for number in range(checkpoint.values.get("done", 0), len(steps)):
        services.send("team@example.com", steps[number], "done\n", key=steps[number])
        checkpoint.save(done=number + 1)
    services.send("owner@example.com", "All steps done", "really\n", key="end")


def main() -> None:
    """The steps as they were."""
    work(("prepare", "announce", "publish", "report"))


def without_the_first() -> None:
    """The steps after a deploy: nothing is prepared any more."""
    work(("announce", "publish", "report"))


scenario = Scenario(
    title="steps are known by their number, and a deploy has removed one of them",
    task=main,
    services=("email",),
    changes={"deploy": Change(task=without_the_first, right="either")},
    schedules=("kill@email.send#2.received / change:deploy",),
    finds=("lost_effect",),
    cases=("CODE-1",),
)
