"""``resumed within``: no fault lets more time pass before a resume than the task is promised."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from chaoskit.campaign.options import Options
from chaoskit.campaign.replay import replay
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.campaign.workers import Inline
from chaoskit.explore.faults import ground_of, preludes
from chaoskit.model.errors import ScenarioError, UsageError
from chaoskit.model.history import History
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Fault, parse_schedule
from chaoskit.model.token import ReplayToken, Target
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.strategies import preludes as drawn
from tests.trial.faulty import scenario

KILLED = "kill@payments.charge#1.applied"


def target_of(tmp_path: Path, more: str = "") -> Target:
    """A task that relies on its key alone; payments remembers one for 24 hours."""
    file = tmp_path / "keyed.py"
    file.write_text(scenario("charge(1, key='k')", more), "utf-8")
    return Target(scenario=str(file))


def campaign(target: Target, tmp_path: Path, **options: object) -> Summary:
    """Run it, and what came of it."""
    chosen = Options(target=target, runs=str(tmp_path / "runs"), **options)  # type: ignore[arg-type]
    *_, last = run(chosen, Inline())
    with Store(last.folder) as store:  # type: ignore[union-attr]
        return summarize(store)


@pytest.mark.parametrize(("more", "verdict"), [("", "INVALID"), ('resumed_within="12h"', "VALID")])
def test_a_key_is_enough_where_nobody_resumes_after_its_lifetime(
    tmp_path: Path, more: str, verdict: str
) -> None:
    """A week later the key is forgotten; within the declared time it is not, and the report says
    which time was declared.
    """
    summary = campaign(target_of(tmp_path, more), tmp_path, faults=("clock",))
    assert summary.verdict == verdict
    assert summary.other_faults > 0
    told = [line for line in summary.not_tested if line.startswith("resumes later than")]
    said = "resumes later than 12h after an interruption: declared by resumed_within"
    assert told == ([said] if more else [])


@pytest.mark.parametrize(
    ("within", "after_s", "text"),
    [
        (None, 0, ["clock:+7d"]),
        ("72h", 0, ["clock:+3d"]),
        ("90m", 0, ["clock:+90m"]),
        ("30d", 0, ["clock:+7d"]),
        ("72h", 86400, ["clock:+2d"]),
        ("72h", 3 * 86400, []),
    ],
)
def test_clocks_are_drawn_not_longer_than_the_limit(
    within: str | None, after_s: int, text: list[str]
) -> None:
    """A week at the most, the limit if that is less, and what ``--resume-after`` leaves of it."""
    known = Scenario(task=print, resumed_within=within)
    ground = ground_of(known, History(()), (), after_s)
    assert [str(fault) for fault in preludes(ground, ("clock",))] == text


@given(drawn(("clock",), resumed_within="72h"))
def test_strategies_draw_clocks_within_the_limit(fault: Fault) -> None:
    """The limit is an argument there, because strategies know no scenario."""
    assert str(fault) == "clock:+3d"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"resume_after_s": 7 * 86400}, "--resume-after 7d is longer"),
        ({"only": (f"{KILLED} / clock:+4d",)}, "clock:+4d is longer"),
        (
            {"only": (f"{KILLED} / clock:+2d",), "resume_after_s": 2 * 86400},
            "--resume-after 2d and clock:+2d is longer",
        ),
    ],
)
def test_more_than_the_limit_is_a_usage_error_that_names_both(
    tmp_path: Path, options: dict[str, object], named: str
) -> None:
    """Nothing is run, and the message has what is too long and the limit."""
    with pytest.raises(UsageError) as refused:
        campaign(target_of(tmp_path, 'resumed_within="72h"'), tmp_path, **options)
    assert named in str(refused.value)
    assert "to be resumed within: 72h (--resumed-within, resumed_within=)" in str(refused.value)
    assert not (tmp_path / "runs").exists()


def test_the_limit_itself_is_no_error(tmp_path: Path) -> None:
    """As long as is declared, and no longer."""
    target = target_of(tmp_path, 'resumed_within="72h"')
    summary = campaign(target, tmp_path, only=(f"{KILLED} / clock:+3d",))
    assert summary.verdict == "INVALID"


def test_a_scenario_whose_own_schedule_is_longer_is_refused() -> None:
    """It contradicts itself."""
    with pytest.raises(ScenarioError, match=r"clock:\+7d is longer .* within: 3600 "):
        Scenario(task=print, resumed_within=3600, schedules=(f"{KILLED} / clock:+7d",))


def test_a_token_from_before_the_limit_was_declared_is_refused(tmp_path: Path) -> None:
    """Its trial is one that nobody promises any more."""
    target = target_of(tmp_path, 'resumed_within="12h"')
    schedule = str(parse_schedule(f"{KILLED} / clock:+7d"))
    with pytest.raises(UsageError, match="is longer than the task is declared"):
        replay(ReplayToken(target=target, seed=0, schedule=schedule), repeats=0)
