"""Two kills and three: further ones are tried where there is something new, and they are real."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from chaoskit.campaign import planning
from chaoskit.campaign.events import Finished
from chaoskit.campaign.options import Options
from chaoskit.campaign.replay import replay
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store, StoredTrial
from chaoskit.campaign.workers import Inline
from chaoskit.explore.plan import points
from chaoskit.model.actions import Late
from chaoskit.model.errors import UsageError
from chaoskit.model.history import History
from chaoskit.model.schedule import Schedule, parse_schedule
from chaoskit.model.token import Target, parse_token
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.trace.abi import this_abi
from tests.campaign.small_task import Care, small_task

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"

pytestmark = pytest.mark.skipif(
    this_abi() is None, reason="system calls are traced on Linux on x86_64 and aarch64 only"
)


@dataclass(frozen=True, slots=True)
class Explored:
    """A campaign with two waves: trials and histories by schedule."""

    first: Sequence[StoredTrial]
    second: Sequence[StoredTrial]
    histories: dict[str, History]
    summary: Summary

    @property
    def judged(self) -> dict[str, tuple[str, frozenset[str], str]]:
        """Verdict, fingerprints and end of every trial."""
        return {
            trial.schedule: (
                trial.judgement.verdict,
                frozenset(finding.fingerprint for finding in trial.judgement.findings),
                trial.judgement.end,
            )
            for trial in (*self.first, *self.second)
        }


def explored(target: Target, runs: Path, **options: object) -> Explored:
    """Kill everywhere, and once more everywhere in what comes of that."""
    given = {"mechanisms": ("calls", "windows"), "depth": 2, "in_flight": ()} | options
    jobs = given.get("jobs", 1)
    chosen = Options(target=target, runs=str(runs), **given)  # type: ignore[arg-type]
    executor = Inline() if jobs == 1 else None
    last = [event for event in run(chosen, executor) if isinstance(event, Finished)][-1]
    with Store(last.folder) as store:
        trials = list(store.trials())
        first, second = ([t for t in trials if t.wave == wave] for wave in (1, 2))
        histories = {trial.schedule: store.history(trial.schedule) for trial in trials}
        return Explored(first, second, histories, summarize(store))


def before(trial: StoredTrial) -> str:
    """The schedule without its last kill."""
    return str(Schedule(parse_schedule(trial.schedule).attempts[:-1]))


# Where the second kills come from.


@pytest.mark.parametrize("care", ["keyed", "none"])
def test_the_second_kills_go_on_from_each_state_once_and_from_nothing_that_failed(
    tmp_path: Path, care: Care
) -> None:
    """One beginning for each different state that a kill left and a resume was right after; and
    then every point that this resume passed.
    """
    target = small_task(tmp_path, care, inputs=["ada", "bob"])
    found = explored(target, tmp_path / "runs", in_flight=("late:1",))
    right: dict[str, str] = {}
    for trial in found.first:
        late = isinstance(parse_schedule(trial.schedule).attempts[0][0].action, Late)
        if trial.judgement.verdict == "VALID" and not late:
            assert trial.world
            right.setdefault(trial.world, trial.schedule)
    begun = {before(trial) for trial in found.second}
    assert begun == set(right.values())
    assert len(begun) < len([t for t in found.first if t.judgement.verdict == "VALID"])
    assert any(trial.judgement.verdict == "INVALID" for trial in found.first) is (care == "none")
    wanted = {
        f"{schedule} / kill@{point}"
        for schedule in begun
        for point in points(found.histories[schedule], ("calls", "windows"), 2)
    }
    assert {trial.schedule for trial in found.second} == wanted
    assert all(trial.landed for trial in found.second)
    assert found.summary.kills == len(found.first) + 2 * len(found.second)


def test_a_state_that_a_sampled_trial_shares_is_not_begun_from_again(tmp_path: Path) -> None:
    """The 65th trial is also run by a real kill; its state is none the newer for that."""
    target = small_task(tmp_path, "keyed", inputs=list("abcdef"))
    found = explored(target, tmp_path / "runs", depth=1)
    assert len(found.first) > 65
    assert len([t for t in found.first if not t.shared]) == len({t.world for t in found.first})


@pytest.mark.exhaustive
def test_any_number_of_workers_makes_the_same_second_wave(tmp_path: Path) -> None:
    """-j 1 and -j 2 go on from the same states, so that they find the same."""
    target = small_task(tmp_path, "keyed", inputs=["ada", "bob", "cyd"])
    waves = [
        [trial.schedule for trial in explored(target, tmp_path / str(jobs), jobs=jobs).second]
        for jobs in (1, 2)
    ]
    assert waves[0] == waves[1]


# They are what real kills are.


def test_a_sample_of_second_kills_by_real_kills_shows_the_same(tmp_path: Path) -> None:
    """Both kills made for real, from the start, are judged as from copies of copies."""
    target = small_task(tmp_path, "none", inputs=["ada", "bob"])
    copied = explored(target, tmp_path / "copied")
    assert {verdict for verdict, *_ in copied.judged.values()} == {"VALID", "INVALID"}
    chosen = copied.second[:: max(1, len(copied.second) // 16)]
    only = tuple(trial.schedule for trial in chosen)
    assert any(not trial.real for trial in chosen)
    real = explored(target, tmp_path / "real", only=only, depth=1, snapshots=False)
    assert all(trial.real and trial.landed for trial in real.first)
    assert real.judged == {schedule: copied.judged[schedule] for schedule in only}


# What only a second kill shows.

RECOVERY = """
import os
import sys

sys.path.insert(0, {folder!r})
import _shop as shop

from chaoskit import Scenario


def main():
    services = shop.Shop()
    for step in range(2):
        begun, done = shop.STATE / f"begun-{{step}}", shop.STATE / f"done-{{step}}"
        if done.exists():
            continue
        reference = f"ref-{{step}}"
        buyer = {{"cents": 100 + step, "email": "a@example.com", "name": "A"}}
        if not begun.exists():
            begun.touch()
            services.charge(buyer, reference=reference)
        elif services.find_charge(reference) is None:
            begun.unlink()  # nothing came of it: start afresh
            services.charge(buyer, reference=reference)
        done.touch()


scenario = Scenario(task=main, services=("payments",), settled=("payments.*",))
"""


def recovery(folder: Path) -> Target:
    """A task whose recovery leaves no intent while it charges."""
    file = folder / "recovery.py"
    file.write_text(RECOVERY.format(folder=str(SCENARIOS)), encoding="utf-8")
    return Target(scenario=str(file))


def test_a_fault_of_the_recovery_is_found_by_a_second_kill_and_by_nothing_less(
    tmp_path: Path,
) -> None:
    """A task that survives every single kill charges twice where it is killed while it recovers:
    at just the points between that charge and its record, and its token shows it again.
    """
    found = explored(recovery(tmp_path), tmp_path / "runs")
    assert {trial.judgement.verdict for trial in found.first} == {"VALID"}
    failed = [trial for trial in found.second if trial.judgement.findings]
    assert found.summary.kinds == {"duplicate_effect"}
    first = {before(trial) for trial in failed}
    assert len(first) == 2, "one state for each step: it has begun, and nothing came of it"
    seconds = {trial.schedule.rpartition(" / ")[2] for trial in failed}
    charged = {f"kill@payments.charge#1.{window}" for window in ("applied", "answered")}
    body_sent = {s for s in seconds if s.startswith("kill@sendto") and s.endswith("+after")}
    recorded = {s for s in seconds if "(done-" in s}
    assert charged <= seconds
    assert body_sent
    assert recorded
    assert seconds == charged | body_sent | recorded
    finding = next(f for f in found.summary.findings if " / " in f.schedule)
    assert finding.between == finding.code == "", "only a first kill is placed"
    assert replay(parse_token(finding.replay.split()[-1])).outcome == "REPRODUCED"


# Three kills.

BUDGET = Target(scenario=str(SCENARIOS / "broken" / "budget_of_starts.py"))


def kills(schedule: str) -> int:
    """How many kills a schedule has."""
    return parse_schedule(schedule).kills


def test_a_budget_of_starts_is_found_by_three_kills_and_by_nothing_less(tmp_path: Path) -> None:
    """The task survives every kill and every pair, and loses an effect at its fourth start; the
    token shows it again, and so does the schedule by name.
    """
    found = explored(BUDGET, tmp_path / "runs", depth=3, mechanisms=("windows",))
    assert {kills(finding.schedule) for finding in found.summary.findings} == {3}
    assert all(trial.judgement.verdict == "VALID" for trial in found.second)
    own = {trial.schedule for trial in found.first}
    one = next(f for f in found.summary.findings if f.schedule not in own)
    assert replay(parse_token(one.replay.split()[-1])).outcome == "REPRODUCED"
    named = explored(BUDGET, tmp_path / "named", depth=1, only=(one.schedule,))
    assert named.summary.kinds == {one.kind}


def test_of_three_kills_a_sample_by_the_seed_is_run_and_the_report_says_of_how_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pairs are run as a whole, and triples not; the same seed draws the same ones."""
    monkeypatch.setattr(planning, "SAMPLED", 7)
    runs = [
        explored(BUDGET, tmp_path / str(number), depth=3, mechanisms=("windows",), seed=seed)
        for number, seed in enumerate((0, 0, 5))
    ]
    triples = [{s for s in run.histories if kills(s) == 3} for run in runs]
    own = len([trial for trial in runs[0].first if kills(trial.schedule) == 3])
    assert [len(drawn) - own for drawn in triples] == [7, 7, 7]
    assert triples[0] == triples[1] != triples[2]
    (said,) = (limit for limit in runs[0].summary.not_tested if "kills each" in limit)
    limit = re.fullmatch(r"(\d+) of (\d+) trials with 3 kills each \(sampled by seed 0\)", said)
    assert limit is not None
    assert int(limit[1]) + 7 == int(limit[2])


@pytest.mark.parametrize("depth", [0, 4])
def test_a_depth_is_one_to_three(depth: int) -> None:
    """The message names all three, and what a longer schedule is written with."""
    with pytest.raises(UsageError, match=r"the depth is 1, 2 or 3 kills in one trial.*--at"):
        planning.depth_from(depth)
