"""Code by the step: each record holds the digest of its own step's code, and no other.

An edit of what is still to come is no reason to stop (`broken/whole_file_hash.py`), an edit of a
step that is in flight or done is (`broken/by_position.py`).
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping

import _shop as shop

from chaoskit import Change, Scenario, probe

CODE = {"prepare": "v1", "announce": "v1", "publish": "v1", "report": "v1"}


def work(code: Mapping[str, str]) -> None:
    """Mail each step by key; refuse where what was done is not what stands there now."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    digests = {step: hashlib.sha256(text.encode()).hexdigest() for step, text in code.items()}
    for step, digest in checkpoint.values.items():
        if digests.get(step) != digest:
            reason = f"step {step} is in this run's records and has changed or is gone"
            probe.refused(reason)
            sys.exit(reason)
    for step, digest in digests.items():
        if step not in checkpoint.values:
            services.send("team@example.com", step, "done\n", key=step)
            checkpoint.save(**{step: digest})


def main() -> None:
    """The steps as they were."""
    work(CODE)


def last_one_edited() -> None:
    """The last step has other code, and still sends the same."""
    work({**CODE, "report": "v2"})


def first_one_edited() -> None:
    """The first step has other code."""
    work({**CODE, "prepare": "v2"})


scenario = Scenario(
    title="only code that the run's records rest on may stop a resume",
    task=main,
    services=("email",),
    changes={
        "later": Change(task=last_one_edited, right="go-on"),
        "earlier": Change(task=first_one_edited, right="either"),
    },
    schedules=(
        "kill@email.send#2.received / change:later",
        "kill@email.send#3.received / change:earlier",
    ),
    cases=("CODE-1", "CODE-2", "CODE-3"),
)
