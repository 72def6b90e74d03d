"""A remote job that is found again: its key is stored before it is started, its id after.

The opposite fault is `broken/job_in_memory.py`.
"""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Start two remote jobs by key, one after the other, and wait for each of them."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    for name in ("load", "train"):
        if checkpoint.values.get(name) == "done":
            continue
        if name not in checkpoint.values:
            checkpoint.save(**{name: services.submit(name, key=f"run-7/{name}")})
        while not services.job_is_done(checkpoint.values[name]):
            pass
        checkpoint.save(**{name: "done"})


scenario = Scenario(
    title="whoever resumes goes on waiting for the same remote job",
    task=main,
    services=("jobs",),
    cases=("DUP-6",),
)
