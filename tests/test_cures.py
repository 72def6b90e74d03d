"""What a diagnosis says is to be mended mends it: applied to its broken task, the task is VALID."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from chaoskit.campaign.events import Finished
from chaoskit.campaign.mechanisms import best
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.campaign.workers import Inline
from chaoskit.model.token import Target
from chaoskit.reporting.summary import Summary, summarize
from tests.cures import CURES, Cure

SCENARIOS = Path(__file__).resolve().parents[1] / "scenarios"
MOST = 60

ORDINARY = {"record_after_effect", "last_one_again", "asked_twice", "torn_checkpoint"}
"""The others are run by ``make exhaustive``."""


def explored(folder: Path, source: str) -> Summary:
    """A sampled campaign over a scenario's source."""
    folder.mkdir()
    shutil.copy(SCENARIOS / "_shop.py", folder)
    file = folder / "task.py"
    file.write_text(source, encoding="utf-8")
    options = Options(
        target=Target(scenario=str(file)),
        runs=str(folder / "runs"),
        max_points=MOST,
        mechanisms=best(),
    )
    last = [event for event in run(options, Inline()) if isinstance(event, Finished)][-1]
    with Store(last.folder) as store:
        return summarize(store)


@pytest.mark.parametrize(
    "cure",
    [
        pytest.param(
            cure,
            id=cure.scenario,
            marks=[] if cure.scenario in ORDINARY else pytest.mark.exhaustive,
        )
        for cure in CURES
    ],
)
def test_the_cure_of_a_diagnosis_makes_its_task_valid(tmp_path: Path, cure: Cure) -> None:
    """The broken task shows the diagnosis; with its cure, and nothing else, it is right."""
    source = (SCENARIOS / "broken" / f"{cure.scenario}.py").read_text(encoding="utf-8")
    told = explored(tmp_path / "broken", source)
    assert cure.missing in {f.diagnosis.missing for f in told.findings if f.diagnosis is not None}
    for old, new in cure.changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    cured = explored(tmp_path / "cured", source)
    assert cured.verdict == "VALID", cured.findings
