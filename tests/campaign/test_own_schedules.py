"""Schedules that a scenario itself asks for: every campaign of it runs them besides its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaoskit.campaign.events import Finished
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.campaign.workers import Inline
from chaoskit.model.errors import UsageError
from chaoskit.model.token import Target

TWICE = "kill@charged#1 / kill@charged#1"

TASK = """
import json, os, urllib.request
from pathlib import Path
from chaoskit import Scenario, probe

def main():
    for number in range(2):
        done = Path(os.environ["CHAOSKIT_STATE_DIR"]) / str(number)
        if not done.exists():
            request = urllib.request.Request(
                os.environ["CHAOSKIT_PAYMENTS_URL"] + "/v1/charges",
                f"amount={{number + 1}}00&currency=eur&source=tok_visa".encode(),
                {{"Authorization": "Bearer sk_test", "Idempotency-Key": str(number)}},
            )
            urllib.request.urlopen(request).read()
            probe.point("charged")
            done.touch()

scenario = Scenario(task=main, services=("payments",), schedules=({schedule!r},))
"""


def trials(tmp_path: Path, schedule: str, **options: object) -> list[str]:
    """The schedules that a campaign of two charges runs, which itself asks for ``schedule``."""
    file = tmp_path / "own.py"
    file.write_text(TASK.format(schedule=schedule))
    target, runs = Target(scenario=str(file)), str(tmp_path / "runs")
    chosen = Options(target=target, runs=runs, in_flight=(), **options)  # type: ignore[arg-type]
    *_, last = run(chosen, Inline())
    assert isinstance(last, Finished)
    with Store(last.folder) as store:
        judged = list(store.trials())
    assert {t.judgement.verdict for t in judged} == {"VALID"}
    assert all(t.landed for t in judged)
    return [t.schedule for t in judged if t.wave == 1]


def test_it_is_run_besides_a_sample_of_one(tmp_path: Path) -> None:
    """However few points are sampled, the scenario's own schedule is among the trials, once."""
    run_ = trials(tmp_path, TWICE, max_points=1)
    assert len(run_) == 2
    assert run_.count(TWICE) == 1


def test_its_crossings_need_no_mechanism(tmp_path: Path) -> None:
    """A kill at a crossing that the scenario names lands where only windows are swept."""
    assert trials(tmp_path, TWICE, mechanisms=("windows",))[-1] == TWICE


def test_one_that_is_swept_anyway_is_not_run_twice(tmp_path: Path) -> None:
    """A schedule that the sweep has, too, is one trial."""
    run_ = trials(tmp_path, "kill@charged#2")
    assert run_.count("kill@charged#2") == 1
    assert len(run_) == len(set(run_))


def test_whoever_asks_for_one_point_gets_that_alone(tmp_path: Path) -> None:
    """--at leaves the scenario's own schedules out."""
    only = "kill@payments.charge#1.applied"
    assert trials(tmp_path, TWICE, only=(only,)) == [only]


def test_a_point_that_is_never_passed_is_refused_by_name(tmp_path: Path) -> None:
    """The refusal names the nearest points of an undisturbed run."""
    with pytest.raises(UsageError, match=r"point in schedules= 'chraged#1'; nearest: charged#1"):
        trials(tmp_path, "kill@chraged#1")
