"""Missing: the cut. A resume writes on behind a line without an end, and both lines are lost."""

from __future__ import annotations

import json

import _shop as shop

from chaoskit import Scenario, probe


def done() -> set[int]:
    """The steps in the log; lines that cannot be read are left out, and left there."""
    log = shop.STATE / "log.jsonl"
    known = set()
    for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else ():
        try:
            known.add(json.loads(line)["step"])
        except ValueError:
            continue
    return known


def main() -> None:
    """Charge by key, with a line in a log for each charge."""
    services = shop.Shop()
    known = done()
    for number, customer in enumerate(shop.inputs()):
        if number in known:
            continue
        services.charge(customer, key=f"order-{number}")
        with (shop.STATE / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps({"step": number}))
            log.flush()
            probe.point("line.written")
            log.write("\n")


scenario = Scenario(
    title="a resume appends to a line without an end, and the next resume can read neither",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 4),
    schedules=("kill@line.written#2 / kill@payments.charge#2.received",),
    finds=("redone_step",),
    cases=("TORN-4",),
)
