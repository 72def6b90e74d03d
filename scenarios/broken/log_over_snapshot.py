"""Missing: one moment for two files. The log is replayed over a snapshot that contains it."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario, probe

ROLL = 2


def state() -> tuple[int, int]:
    """How many were charged and for how much: the snapshot and what the log adds to it."""
    values = shop.Checkpoint("snapshot.json").values
    done, total = values.get("done", 0), values.get("total", 0)
    log = shop.STATE / "log"
    for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else ():
        number, cents = map(int, line.split())
        done, total = max(done, number), total + cents  # is it in there already?
    return done, total


def main() -> None:
    """Charge by key, log each amount, and put the log into a snapshot after every second one."""
    services = shop.Shop()
    buyers = shop.inputs()
    done, total = state()
    for number in range(done + 1, len(buyers) + 1):
        cents = buyers[number - 1]["cents"]
        services.charge(buyers[number - 1], key=f"order-{number}")
        with (shop.STATE / "log").open("a", encoding="utf-8") as log:
            log.write(f"{number} {cents}\n")
        total += cents
        if number % ROLL == 0:
            shop.Checkpoint("snapshot.json").save(done=number, total=total)
            probe.point("snapshot.made")
            (shop.STATE / "log").unlink()
    (shop.STATE / "total.txt").write_text(f"{total}\n", encoding="utf-8")


scenario = Scenario(
    title="a log is replayed over a snapshot that contains it",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 5),
    outputs=("total.txt",),
    schedules=("kill@snapshot.made#1",),
    finds=("diverged_state",),
    cases=("TORN-9",),
)
