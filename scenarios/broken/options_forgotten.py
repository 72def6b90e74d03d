"""Missing: the options in the run's identity. With other ones the old plan is gone on with."""

from __future__ import annotations

import _shop as shop

from chaoskit import Change, Scenario


def main() -> None:
    """Have each analyst mail a report, by key; the plan is made once for a ticker and a day."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint("ACME-2024-05-01.json")
    if "plan" not in checkpoint.values:
        checkpoint.save(plan=shop.inputs()["analysts"])
    for analyst in checkpoint.values["plan"]:  # whom the resume asked for is not compared
        if analyst not in checkpoint.values:
            services.send("desk@example.com", f"Report: {analyst}", "buy\n", key=analyst)
            checkpoint.save(**{analyst: "done"})


scenario = Scenario(
    title="a resume with other options goes on with the plan of the first ones",
    task=main,
    services=("email",),
    inputs=lambda seed: {"analysts": ["market", "news"]},
    changes={
        "options": Change(
            inputs=lambda seed: {"analysts": ["market", "news", "social"]},
            right="refuse",
            finding="wrong_inputs",
        )
    },
    schedules=("kill@email.send#2.received / change:options",),
    finds=("wrong_inputs",),
    cases=("INPUT-1",),
)
