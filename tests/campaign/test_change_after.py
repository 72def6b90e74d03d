"""Changes that come after a step: where they are drawn, and what one before its step says."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaoskit.campaign.events import Finished
from chaoskit.campaign.judging import judge_again
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.campaign.workers import Inline
from chaoskit.model.errors import UsageError
from chaoskit.model.token import Target
from chaoskit.reporting.summary import Summary, summarize

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
SOUND = (SCENARIOS / "sound" / "price_of_the_quote.py").read_text(encoding="utf-8")
AFTER = ', after="email.send"'
EARLY, LATE = (f"kill@email.send#1.{window} / change:price" for window in ("received", "applied"))


def campaign(tmp_path: Path, source: str, **options: object) -> Summary:
    """The summary of a scenario with this source; judging it again changes nothing."""
    tmp_path.mkdir(exist_ok=True)
    for name, text in (("_shop.py", (SCENARIOS / "_shop.py").read_text()), ("quote.py", source)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    target, runs = Target(scenario=str(tmp_path / "quote.py")), str(tmp_path / "runs")
    chosen = Options(target=target, runs=runs, in_flight=(), **options)  # type: ignore[arg-type]
    *_, last = run(chosen, Inline())
    assert isinstance(last, Finished)
    with Store(last.folder) as store:
        assert judge_again(store) == []
        return summarize(store)


def test_without_its_step_a_sound_task_would_be_accused(tmp_path: Path) -> None:
    """Before the quote is made, a new price is simply the price: that is what ``after`` says."""
    assert AFTER in SOUND
    assert campaign(tmp_path / "with", SOUND).verdict == "VALID"
    assert campaign(tmp_path / "without", SOUND.replace(AFTER, "")).kinds == {"wrong_inputs"}


def test_one_before_its_step_that_the_scenario_lists_is_the_kill_before_it(tmp_path: Path) -> None:
    """It changes nothing, and the report counts it."""
    listed = SOUND.replace("    cases=", f"    schedules=({EARLY!r}, {LATE!r}),\n    cases=")
    summary = campaign(tmp_path, listed)
    assert (summary.verdict, summary.unknowns) == ("VALID", ())
    said = "1 change before the step of its after=: only the kill took place"
    assert said in summary.not_tested


def test_one_before_its_step_that_was_asked_for_proves_nothing(tmp_path: Path) -> None:
    """The reason is told."""
    summary = campaign(tmp_path, SOUND, only=(EARLY,))
    assert summary.verdict == "UNKNOWN"
    why = "email.send (its after=) was not done before; kill the task later"
    assert summary.unknowns == (f"change:price of attempt 2 did not land: {why}",)
    assert campaign(tmp_path, SOUND, only=(LATE,)).verdict == "VALID"


@pytest.mark.parametrize("more", [{}, {"only": (LATE,)}])
def test_a_step_that_nobody_does_is_refused(tmp_path: Path, more: dict[str, object]) -> None:
    """With the nearest one that an undisturbed run does."""
    with pytest.raises(UsageError, match=r"nearest: email\.send"):
        campaign(tmp_path, SOUND.replace("email.send", "email.sent"), **more)
