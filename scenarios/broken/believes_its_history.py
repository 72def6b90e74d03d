"""Missing: a look at what is there. A file that the history says was written is not looked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import _shop as shop

from chaoskit import Change, Scenario, probe


def tidy_up(folder: Path, env: Mapping[str, str]) -> None:
    """Somebody removes the work tree."""
    (folder / "report.txt").unlink(missing_ok=True)


def main() -> None:
    """Write a report, and tell the team, by key, that it is there."""
    history = shop.Checkpoint("history.json")
    if "wrote" not in history.values:
        (shop.STATE / "report.txt").write_text("all is well\n", encoding="utf-8")
        history.save(wrote="report.txt")
        probe.point("report.written")
    text = f"I wrote {history.values['wrote']}, please read it.\n"  # it says so here
    shop.Shop().send("team@example.com", "The report", text, key="report")


scenario = Scenario(
    title="a restored history says that a file was written, which is gone",
    task=main,
    services=("email",),
    changes={"gone": Change(world=tidy_up, right="refuse", finding="stale_world")},
    schedules=("kill@report.written#1 / change:gone",),
    finds=("stale_world",),
    cases=("WORLD-3",),
)
