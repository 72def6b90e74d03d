"""Missing: how a worker ended. Its watcher takes a killed one for one that has failed, and acks."""

from __future__ import annotations

import os

import _shop as shop

from chaoskit import Scenario


def watch(worker: int) -> None:
    """Beside the worker: when it is gone, whatever it was doing is acknowledged."""
    os.read(worker, 1)  # nothing comes but the end of the pipe
    checkpoint = shop.Checkpoint()
    if "doing" in checkpoint.values:
        checkpoint.save(done=checkpoint.values["doing"])  # dead or done, it is not asked


def main() -> None:
    """Charge by key; a watcher outlives the worker if only that is killed."""
    theirs, mine = os.pipe()
    if os.fork() == 0:
        os.close(mine)
        watch(theirs)
        os._exit(0)
    os.close(theirs)
    services = shop.Shop()
    buyers = shop.inputs()
    for number in range(shop.Checkpoint().values.get("done", 0), len(buyers)):
        shop.Checkpoint().save(doing=number + 1)
        services.charge(buyers[number], key=f"order-{number}")
        shop.Checkpoint().save(done=number + 1)
    services.send("owner@example.com", "All charged", "the month is closed\n", key="month")
    os.close(mine)
    os.wait()


scenario = Scenario(
    title="a watcher acknowledges the job of a worker that was killed",
    task=main,
    services=("payments", "email"),
    inputs=lambda seed: shop.customers(seed, 3),
    schedules=("kill-leader@payments.charge#2.received",),
    finds=("lost_effect",),
    cases=("LOST-5",),
)
