"""Bounded resumes: what they show is what resumes show that are followed to their end."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from chaoskit.campaign.events import BoundingGivenUp, Finished
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.campaign.trials import DOUBT
from chaoskit.campaign.workers import Inline
from chaoskit.explore.plan import Mechanism
from chaoskit.model.events import ResumeBounded
from chaoskit.model.points import WINDOWS
from chaoskit.model.token import Target
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.trace.abi import this_abi
from tests.campaign.small_task import small_task
from tests.marks import rare

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"

Judged = tuple[str, str, frozenset[tuple[str, str, str]], tuple[str, ...]]
"""Verdict, end, findings with their causes, and what is not known."""


@dataclass(slots=True)
class Explored:
    """A campaign: what each schedule showed, and of which the resume was bounded.

    ``followed``: the world was that of the undisturbed run, and the resume went on all the same.
    ``given_up``: after what schedules bounding was.
    """

    judged: dict[str, Judged] = field(default_factory=dict)
    bounded: set[str] = field(default_factory=set)
    followed: set[str] = field(default_factory=set)
    given_up: list[str] = field(default_factory=list)
    summary: Summary | None = None

    @property
    def failed(self) -> set[str]:
        """The schedules with findings."""
        return {schedule for schedule, judged in self.judged.items() if judged[2]}

    @property
    def findings(self) -> set[tuple[str, str]]:
        """Kinds and fingerprints, wherever they were seen."""
        return {(kind, print_) for judged in self.judged.values() for kind, print_, _ in judged[2]}


def explored(
    target: Target,
    runs: Path,
    resumes: str,
    mechanisms: tuple[Mechanism, ...] = ("windows", "crossings"),
    **options: object,
) -> Explored:
    """A campaign whose resumes are followed as ``resumes`` says."""
    chosen = Options(
        target=target,
        mechanisms=mechanisms,
        in_flight=(),
        resumes=resumes,
        runs=str(runs / resumes),
        **options,  # type: ignore[arg-type]
    )
    events = list(run(chosen, Inline()))
    (last,) = [event for event in events if isinstance(event, Finished)]
    found = Explored(given_up=[e.schedule for e in events if isinstance(e, BoundingGivenUp)])
    with Store(last.folder) as store:
        for trial in store.trials():
            judgement = trial.judgement
            findings = frozenset((f.kind, f.fingerprint, f.cause) for f in judgement.findings)
            found.judged[trial.schedule] = (
                judgement.verdict,
                judgement.end,
                findings,
                judgement.unknowns,
            )
            for _, body in store.history(trial.schedule).of(ResumeBounded):
                (found.followed if body.followed else found.bounded).add(trial.schedule)
        found.summary = summarize(store)
    return found


def both(
    target: Target,
    tmp_path: Path,
    mechanisms: tuple[Mechanism, ...] = ("windows", "crossings"),
    **options: object,
) -> Explored:
    """The bounded campaign, after it was seen to show just what the full one does."""
    full = explored(target, tmp_path, "full", mechanisms, **options)
    bounded = explored(target, tmp_path, "bounded", mechanisms, **options)
    assert not full.bounded
    assert not full.followed
    assert bounded.judged == full.judged
    return bounded


OFTEN = {
    *("coarse_key", "done_before_the_end", "lagging_record", "no_checkpoint"),
    *("no_effect_ids", "record_after_effect", "record_before_effect", "step_number_only"),
}
"""Where most resumes need not be followed to their end."""

NEVER = {
    "half_applied": "it makes no request",
    "no_outputs": "a resume has lost its sum, and sends others",
    "stale_lock": "a resume does not get as far as a request",
    "backfill": "it makes one request in all",
    "file_migration": "it makes one request in all",
}
"""Why there is nothing to bound in some."""

MOST = {"backfill": 1, "file_migration": 4, "left_behind": 9} | dict.fromkeys(
    ("forty_calls", "fresh_key", "half_applied", "no_outputs", "stale_lock"), 10
)
ORDINARY = {"record_after_effect", "no_inputs"}
"""One of each sort; the others are run by ``make exhaustive``."""

IN_MEMORY = {
    "fresh_budget": "what was spent is known in memory only",
    "undo_forgotten": "what is to be undone is known in memory only",
}
"""Where a resume whose world is the undisturbed run's goes on in another way all the same."""


def marks(name: str) -> list[pytest.MarkDecorator]:
    """When a scenario is run."""
    return [] if name in ORDINARY or name in IN_MEMORY else [pytest.mark.exhaustive]


FILES = [
    pytest.param(file, id=file.stem, marks=marks(file.stem))
    for file in sorted([*SCENARIOS.glob("broken/[!_]*.py"), *SCENARIOS.glob("sound/[!_]*.py")])
]


@pytest.mark.parametrize("file", FILES)
def test_bounded_resumes_show_what_full_ones_do(tmp_path: Path, file: Path) -> None:
    """Verdict, end and findings of every trial of the project's scenarios are the same; a sound
    one's are VALID.
    """
    target = Target(scenario=str(file))
    if file.parent.name == "sound":
        found = explored(target, tmp_path, "bounded", max_points=MOST.get(file.stem, 24))
        assert {verdict for verdict, *_ in found.judged.values()} == {"VALID"}
    else:
        found = both(target, tmp_path, max_points=MOST.get(file.stem, 24))
    assert file.stem not in (OFTEN if not found.bounded else {**NEVER, **IN_MEMORY})
    assert bool(found.given_up) == (file.stem in IN_MEMORY)
    assert not found.bounded & found.followed


FORTY = """
import sys
sys.path.insert(0, {folder!r})
from forty_steps import _scenario
scenario = _scenario("few steps", journal="{journal}", care="{care}", steps={steps})
"""


@pytest.mark.skipif(this_abi() is None, reason="system calls cannot be traced here")
@pytest.mark.parametrize(
    ("journal", "care", "steps", "verdict"),
    [
        ("WAL", "none", 5, "INVALID"),
        rare("DELETE", "none", 3, "INVALID"),
        ("WAL", "look up", 4, "VALID"),
        rare("WAL", "key", 4, "VALID"),
    ],
)
def test_bounded_resumes_fail_at_the_same_calls(
    tmp_path: Path, journal: str, care: str, steps: int, verdict: str
) -> None:
    """At every system call of the exact steps a bounded resume shows what a full one does."""
    file = tmp_path / "few_steps.py"
    text = FORTY.format(folder=str(SCENARIOS / "exact"), journal=journal, care=care, steps=steps)
    file.write_text(text, encoding="utf-8")
    found = both(Target(scenario=str(file)), tmp_path, ("calls", "windows"))
    assert found.summary is not None
    assert found.summary.verdict == verdict
    assert found.bounded
    assert any("--resumes full" in remark for remark in found.summary.remarks)


MEMORY = """
import json
import sys

sys.path.insert(0, {folder!r})
import _shop as shop

from chaoskit import Scenario


def main():
    services, checkpoint = shop.Shop(), shop.Checkpoint()
    began = "done" not in checkpoint.values
    for number in range(checkpoint.values.get("done", 0), 8):
        buyer = {{"cents": 100 + number, "email": "a@b.c", "name": "A"}}
        services.charge(buyer, key=f"k{{number}}")
        checkpoint.save(done=number + 1)
    if began:
        services.send("owner@example.com", "All charged", "the month is closed", key="month")


scenario = Scenario(task=main, services=("payments", "email"))
"""


def test_what_only_the_first_process_remembers_to_do_makes_every_resume_run_to_its_end(
    tmp_path: Path,
) -> None:
    """A mail that only a process which began the run sends: one of the resumes that are followed
    past their horizon shows that it is lost, and then nothing is bounded any more.
    """
    file = tmp_path / "memory.py"
    file.write_text(MEMORY.format(folder=str(SCENARIOS)), encoding="utf-8")
    found = both(Target(scenario=str(file)), tmp_path, ("windows",))
    (seen,) = found.given_up
    assert seen in found.failed
    assert not found.bounded
    windows = {f"kill@payments.charge#{n}.{window}" for n in range(3, 9) for window in WINDOWS}
    assert windows <= found.failed
    assert found.summary is not None
    (remark,) = [r for r in found.summary.remarks if "every resume ran to its end" in r]
    assert seen in remark


def test_the_repeats_of_a_disputed_trial_are_trials(tmp_path: Path) -> None:
    """Where a copy and a real kill disagree each repeat has a resume of its own, so that what is
    said of it is what it did.
    """
    target = small_task(tmp_path, "every other time", inputs=list("abcdefgh"))
    only = tuple(f"kill@payments.charge#{n}.applied" for n in (3, 4, 5, 6, 2))
    found = explored(target, tmp_path, "bounded", ("windows",), only=only)
    doubts = [doubt for judged in found.judged.values() for doubt in judged[3]]
    assert any(doubt.startswith(DOUBT) for doubt in doubts)
    assert not any("did not land" in doubt for doubt in doubts)
    assert not any("5/5" in doubt for doubt in doubts), "every other time"
