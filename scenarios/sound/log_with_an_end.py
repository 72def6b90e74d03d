"""A log whose torn tail is cut off before anything is written behind it.

The opposite faults are `broken/glued_tail.py` (writes behind it) and `broken/hole_in_the_log.py`
(takes damage in the middle for the end).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import _shop as shop

from chaoskit import Change, Scenario, probe


def zero_a_block(folder: Path, env: Mapping[str, str]) -> None:
    """The first line is NULs, as after a loss of power."""
    log = folder / "log.jsonl"
    lines = log.read_bytes().splitlines(keepends=True) if log.exists() else []
    if len(lines) > 1:
        lines[0] = b"\0" * (len(lines[0]) - 1) + b"\n"
        log.write_bytes(b"".join(lines))


def known(log: Path) -> list[int]:
    """The steps in the log, which ends with a whole line afterwards."""
    data = log.read_bytes() if log.exists() else b""
    whole = data[: data.rfind(b"\n") + 1]
    if whole != data:
        print(f"the last {len(data) - len(whole)} bytes of the log were no whole line")
        with log.open("r+b") as file:
            file.truncate(len(whole))
    try:
        return [json.loads(line)["step"] for line in whole.splitlines()]
    except ValueError:
        reason = f"{log.name} is damaged before its end: restore it from a backup"
        probe.refused(reason)
        sys.exit(reason)


def main() -> None:
    """Charge by key, with a line in a log for each charge."""
    services = shop.Shop()
    log = shop.STATE / "log.jsonl"
    done = known(log)
    for number, customer in enumerate(shop.inputs()):
        if number in done:
            continue
        services.charge(customer, key=f"order-{number}")
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": number}))
            file.flush()
            probe.point("line.written")
            file.write("\n")


scenario = Scenario(
    title="a torn tail of the log is cut off, damage before it is refused",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 4),
    changes={"hole": Change(world=zero_a_block, right="either")},
    schedules=(
        "kill@line.written#2 / kill@payments.charge#2.received",
        "kill@payments.charge#4.received / change:hole",
    ),
    cases=("TORN-3", "TORN-4"),
)
