"""Missing: which code the rest depends on. Any edit of the file strands every run in flight."""

from __future__ import annotations

import hashlib
import sys

import _shop as shop

from chaoskit import Change, Scenario, probe


def work(source: str) -> None:
    """Charge by key, with the code with which the run began and no other."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    digest = hashlib.sha256(source.encode()).hexdigest()
    if checkpoint.values.setdefault("code", digest) != digest:
        probe.refused("the code has changed since this run began")
        sys.exit("the code has changed since this run began: start a new one")
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)


def main() -> None:
    """The file as it was."""
    work("charge(customer)")


def edited() -> None:
    """The file with a comment."""
    work("charge(customer)  # by key")


scenario = Scenario(
    title="any edit of the file, even of a comment, strands the run",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    changes={"comment": Change(task=edited, right="go-on")},
    schedules=("kill@payments.charge#2.received / change:comment",),
    finds=("needless_refusal",),
    cases=("CODE-3",),
)
