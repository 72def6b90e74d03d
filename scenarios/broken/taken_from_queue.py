"""Missing: the job while it is worked on. Taking it from the queue removes the only copy."""

from __future__ import annotations

import json
from pathlib import Path

import _shop as shop

from chaoskit import Scenario


def fill(folder: Path, seed: int) -> None:
    """A queue: one file for each job."""
    (folder / "queue").mkdir()
    for number, customer in enumerate(shop.customers(seed, 4)):
        (folder / "queue" / f"{number}.json").write_text(json.dumps(customer), encoding="utf-8")


def main() -> None:
    """Take each job, charge by key, and say when the queue is empty."""
    services = shop.Shop()
    for job in sorted((shop.STATE / "queue").iterdir()):
        customer = json.loads(job.read_text(encoding="utf-8"))
        job.unlink()  # from here on only this process knows of it
        services.charge(customer, key=job.stem)
    services.send("owner@example.com", "Queue empty", "all jobs are done\n", key="empty")


scenario = Scenario(
    title="taking a job from the queue removes the only copy of it",
    task=main,
    services=("payments", "email"),
    prepare=fill,
    finds=("lost_effect",),
    cases=("LOST-2", "LOST-3"),
)
