"""A damage that finds no file: what it proves when it was drawn, and when it was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaoskit.campaign.events import Finished
from chaoskit.campaign.judging import judge_again
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.campaign.workers import Inline
from chaoskit.model.token import Target
from chaoskit.reporting.summary import Summary, summarize

TASK = """
import os, urllib.request
from pathlib import Path
from chaoskit import Scenario

def main():
    state = Path(os.environ["CHAOSKIT_STATE_DIR"])
    for number in range(2):
        if (state / str(number)).exists():
            continue
        request = urllib.request.Request(
            os.environ["CHAOSKIT_PAYMENTS_URL"] + "/v1/charges",
            f"amount={number + 1}00&currency=eur&source=tok_visa".encode(),
            {"Authorization": "Bearer sk_test", "Idempotency-Key": str(number)},
        )
        urllib.request.urlopen(request).read()
        (state / str(number)).touch()
    (state / "the-end").touch()

scenario = Scenario(task=main, services=("payments",), checkpoints=("the-end",))
"""


def campaign(tmp_path: Path, **options: object) -> tuple[Summary, dict[str, bool]]:
    """Its summary, and which trials landed; judging it again changes nothing."""
    file = tmp_path / "idle.py"
    file.write_text(TASK)
    target, runs = Target(scenario=str(file)), str(tmp_path / "runs")
    chosen = Options(target=target, runs=runs, in_flight=(), **options)  # type: ignore[arg-type]
    *_, last = run(chosen, Inline())
    assert isinstance(last, Finished)
    with Store(last.folder) as store:
        landed = {t.schedule: t.landed for t in store.trials() if "damage" in t.schedule}
        assert judge_again(store) == []
        return summarize(store), landed


def test_one_that_was_drawn_is_the_kill_before_it_and_is_counted(tmp_path: Path) -> None:
    """The file is made at the very end, so that no kill finds it, only what comes after a success:
    VALID, and said.
    """
    summary, landed = campaign(tmp_path, faults=("damage",), max_points=6)
    idle = [schedule for schedule, there in landed.items() if not there]
    assert idle == [schedule for schedule in landed if "/ - /" not in schedule]
    assert (summary.verdict, summary.unknowns) == ("VALID", ())
    assert summary.other_faults == sum(landed.values())
    said = f"{len(idle)} trials of damage that found no file to damage: they are plain kills"
    assert said in summary.not_tested


@pytest.mark.parametrize("pattern", ["the-end", "the-emd", "*.json"])
def test_one_that_was_asked_for_proves_nothing(tmp_path: Path, pattern: str) -> None:
    """A pattern that was mistyped, or comes too early, is no pass."""
    wanted = f"kill@payments.charge#1.applied / damage:torn:{pattern}"
    summary, landed = campaign(tmp_path, only=(wanted,))
    assert landed == {wanted: False}
    assert summary.verdict == "UNKNOWN"
    assert summary.unknowns == (f"damage:torn:{pattern} of attempt 2 did not land",)
