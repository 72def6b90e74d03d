"""Missing: the id of the remote job. Only the process that waits for it has it."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Start two remote jobs, one after the other, and wait for each of them."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    for name in ("load", "train"):
        if name not in checkpoint.values:
            job = services.submit(name)  # no key, and the id is not kept
            while not services.job_is_done(job):
                pass
            checkpoint.save(**{name: "done"})


scenario = Scenario(
    title="a remote job is started again when the process that waits for it dies",
    task=main,
    services=("jobs",),
    finds=("duplicate_effect",),
    cases=("DUP-6",),
)
