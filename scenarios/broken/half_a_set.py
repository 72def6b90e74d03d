"""Missing: a mark that a checkpoint is whole. Of three files, those that are there are believed."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario, probe


def load(number: int) -> tuple[int, int]:
    """Position and running total of checkpoint ``number``, 0 for what is not there."""
    folder = shop.STATE / f"{number:03}"
    files = [folder / name for name in ("position", "total")]
    position, total = (int(f.read_text(encoding="utf-8")) if f.exists() else 0 for f in files)
    return position, total


def save(number: int, total: int) -> None:
    """A checkpoint: a folder with a file for each part."""
    folder = shop.STATE / f"{number:03}"
    folder.mkdir(exist_ok=True)
    for name, value in (("position", number), ("total", total)):
        beside = folder / f"{name}.tmp"
        beside.write_text(str(value), encoding="utf-8")
        beside.replace(folder / name)  # each file is whole, the set is not
        probe.point("part.saved")


def main() -> None:
    """Mail each customer the running total, by key."""
    services = shop.Shop()
    buyers = shop.inputs()
    whole = [int(f.parent.name) for f in shop.STATE.glob("*/position")]
    position, total = load(max(whole, default=0))
    for number in range(position, len(buyers)):
        text = f"{total + buyers[number]['cents']} cents up to {buyers[number]['name']}\n"
        services.send(buyers[number]["email"], "Running total", text, key=f"mail-{number}")
        total += buyers[number]["cents"]
        save(number + 1, total)


scenario = Scenario(
    title="of a checkpoint of several files those that are there are believed",
    task=main,
    services=("email",),
    inputs=lambda seed: shop.customers(seed, 3),
    schedules=("kill@part.saved#3",),
    finds=("wrong_inputs",),
    cases=("TORN-2",),
)
