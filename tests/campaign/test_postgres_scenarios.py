"""Sound tasks with everything in PostgreSQL, killed on both sides of every commit; broken twins."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from chaoskit.campaign.events import Finished
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.campaign.workers import Inline
from chaoskit.model.token import Target
from chaoskit.reporting.summary import Summary, summarize
from tests.fake_services.postgres_running import needs_postgres
from tests.marks import rare

pytestmark = needs_postgres

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios" / "postgres"
FAMILIES = ("forty_calls", "file_migration", "backfill")

WINDOWS = ("received", "applied", "answered")


def explored(scenario: str, runs: Path) -> tuple[Summary, list[str]]:
    """Kill at every window; the summary, and the schedules of all trials."""
    options = Options(
        target=Target(scenario=str(SCENARIOS / scenario)),
        mechanisms=("windows",),
        runs=str(runs),
    )
    *_, last = run(options, Inline())
    assert isinstance(last, Finished)
    with Store(last.folder) as store:
        return summarize(store), [trial.schedule for trial in store.trials()]


def commits(schedules: Iterable[str]) -> dict[str, set[str]]:
    """Which windows were killed at, for each commit of a transaction and of a statement."""
    found: dict[str, set[str]] = {}
    for text in schedules:
        if part := re.fullmatch(r"kill@(postgres\.\w+#\d+)\.(\w+)", text):
            found.setdefault(part[1], set()).add(part[2])
    return found


def is_valid_at_every_commit(scenario: str, runs: Path) -> None:
    """Assert that whatever it is killed at it ends as if it had not been."""
    summary, schedules = explored(scenario, runs)
    assert summary.verdict == "VALID", summary
    assert summary.points.landed == summary.points.tested == summary.points.total
    assert summary.ends == {"completed": summary.trials}
    seen = commits(schedules)
    assert sum(name.startswith("postgres.commit") for name in seen) >= 3
    assert all(windows == set(WINDOWS) for windows in seen.values()), seen


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_kill_on_either_side_of_any_commit_does_no_harm(tmp_path: Path, family: str) -> None:
    """With a short input: every commit, before the server has it, before its answer, after it."""
    is_valid_at_every_commit(f"{family}.py:few", tmp_path)


@pytest.mark.exhaustive
@pytest.mark.timeout(0)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_whole_task_stands_a_kill_at_any_commit(tmp_path: Path, family: str) -> None:
    """The same with the whole input."""
    is_valid_at_every_commit(f"{family}.py", tmp_path)


@pytest.mark.parametrize(
    ("name", "kind", "schedule"),
    [
        ("repeats_lost_commit", "duplicate_effect", "lose-reply@postgres.commit#2"),
        rare("trusts_lost_commit", "lost_effect", "down:1@postgres.commit#2"),
    ],
)
def test_who_guesses_what_became_of_a_commit_is_caught(
    tmp_path: Path, name: str, kind: str, schedule: str
) -> None:
    """By that finding at that loss, and by nothing where it is killed instead."""
    summary, schedules = explored(f"{name}.py", tmp_path)
    assert [(f.kind, f.schedule) for f in summary.findings] == [(kind, schedule)]
    assert summary.verdicts == {"VALID": len(schedules) - 2, "INVALID": 1}
