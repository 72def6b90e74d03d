"""Missing: a word about the damage. What stands before the first bad line is taken for all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import _shop as shop

from chaoskit import Change, Scenario


def done() -> int:
    """How many steps the log knows."""
    log = shop.STATE / "log.jsonl"
    known = 0
    for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else ():
        try:
            known = json.loads(line)["done"]
        except ValueError:
            break  # and what comes after it?
    return known


def main() -> None:
    """Charge by key, with a line in a log for each charge."""
    services = shop.Shop()
    buyers = shop.inputs()
    for number in range(done(), len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        with (shop.STATE / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps({"done": number + 1}) + "\n")


def zero_a_block(folder: Path, env: Mapping[str, str]) -> None:
    """The second line is NULs, as after a loss of power."""
    log = folder / "log.jsonl"
    lines = log.read_bytes().splitlines(keepends=True) if log.exists() else []
    if len(lines) > 1:
        lines[1] = b"\0" * (len(lines[1]) - 1) + b"\n"
        log.write_bytes(b"".join(lines))


scenario = Scenario(
    title="a log with damage in its middle is read up to there, and nothing is said",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 4),
    changes={"hole": Change(world=zero_a_block, right="either")},
    schedules=("kill@payments.charge#4.received / change:hole",),
    finds=("redone_step",),
    cases=("TORN-3",),
)
