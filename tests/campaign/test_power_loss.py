"""Power loss: which ways to keep a record survive it, profile by profile and point by point.

What each way must lose follows from what it syncs, and at which points that shows follows from the
trace of the undisturbed run; both are predicted here and compared with what a campaign finds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from chaoskit.campaign.events import Finished
from chaoskit.campaign.options import Options
from chaoskit.campaign.replay import replay
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store, StoredTrial
from chaoskit.campaign.workers import Inline
from chaoskit.model.actions import POWER, Kill, PowerLoss
from chaoskit.model.events import CallSeen, EffectApplied
from chaoskit.model.history import History
from chaoskit.model.schedule import Action, Fault, Schedule, parse_schedule
from chaoskit.model.token import Target, parse_token
from chaoskit.reporting.limits import POWER_ONLY
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.trace.abi import this_abi
from chaoskit.trial.loading import load
from tests.marks import rare

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios" / "exact"

pytestmark = pytest.mark.skipif(
    this_abi() is None, reason="system calls are traced on Linux on x86_64 and aarch64 only"
)

SHORTER = """
import sys
from dataclasses import replace
from functools import partial

sys.path.insert(0, {folder!r})
import power_loss

scenario = replace(power_loss.{name}, task=partial(power_loss.{name}.task, steps={steps}))
"""


def shorter(folder: Path, name: str, steps: int) -> Target:
    """One of the project's scenarios with fewer steps."""
    file = folder / f"{name}_{steps}.py"
    text = SHORTER.format(folder=str(SCENARIOS), name=name, steps=steps)
    file.write_text(text, encoding="utf-8")
    return Target(scenario=str(file))


@dataclass(frozen=True, slots=True)
class Explored:
    """A campaign that also cuts the power: its trials with what was done, and what was seen."""

    trials: Sequence[tuple[Fault, StoredTrial]]
    survey: History
    summary: Summary

    def failed(self, action: str) -> dict[str, frozenset[str]]:
        """The calls at which this showed findings, with their kinds."""
        return {
            str(fault.point).removesuffix("+after"): frozenset(
                finding.kind for finding in trial.judgement.roots
            )
            for fault, trial in self.trials
            if str(fault.action) == action and trial.judgement.findings
        }


def explored(target: Target, runs: Path, **options: object) -> Explored:
    """Kill before every call, and cut the power after every call in three ways."""
    chosen = Options(
        target=target,
        mechanisms=("calls",),
        power_loss=True,
        runs=str(runs),
        **options,  # type: ignore[arg-type]
    )
    last = [event for event in run(chosen, Inline()) if isinstance(event, Finished)][-1]
    with Store(last.folder) as store:
        survey = store.survey()
        assert survey is not None
        trials = []
        for trial in store.trials():
            schedule = parse_schedule(trial.schedule)
            assert trial.landed, trial.schedule
            assert not trial.judgement.unknowns, trial.judgement
            if schedule != Schedule():
                trials.append((schedule.attempts[0][0], trial))
        return Explored(trials, survey[0], summarize(store))


# What must be lost, from the trace of the undisturbed run.

Predicted = Callable[[History], set[str]]
"""The calls at which a kill, or after which a loss of power, must show a finding."""


def nowhere(history: History) -> set[str]:
    """Nothing can be lost."""
    return set()


def before(name: str) -> Predicted:
    """Before each call of this name, which alone repairs what the one ahead of it broke."""
    return lambda history: {
        seen.call for _, seen in history.of(CallSeen) if re.match(name, seen.call)
    }


def ever_since(name: str, until: str = "$") -> Predicted:
    """From each call that breaks the record until the one that makes it whole, if any does."""

    def found(history: History) -> set[str]:
        calls, broken = set(), False
        for _, seen in history.of(CallSeen):
            broken = (broken or bool(re.match(name, seen.call))) and not re.match(until, seen.call)
            if broken:
                calls.add(seen.call)
        return calls

    return found


def after_the_effect(until: str = "$") -> Predicted:
    """From each effect until its intent is durable, if that ever happens.

    The task relies on its intent: without that it does not look up, and charges again.
    """

    def found(history: History) -> set[str]:
        calls, done, last = set(), False, ""
        for event in history.events:
            body = event.body
            if isinstance(body, EffectApplied):  # it has landed once the call that sent it is over
                done = True
                calls.add(last)
            elif isinstance(body, CallSeen):
                last = body.call
                done = done and not re.match(until, last)
                if done:
                    calls.add(last)
        return calls

    return found


STUCK = frozenset({"stuck"})
TWICE = frozenset({"duplicate_effect", "silent_restart"})
"""Who starts over with one effect done does it twice; with more, that is called a restart."""

SYNC = r"f(data)?sync"


@dataclass(frozen=True, slots=True)
class Case:
    """One way to keep the record: where each fault shows something, and which kinds.

    ``why`` is the reason. ``steps``: of the task that is tried.
    """

    name: str
    why: str
    kill: Predicted = nowhere
    drop: Predicted = nowhere
    meta: Predicted = nowhere
    data: Predicted = nowhere
    steps: int = 2
    kinds: Mapping[str, frozenset[str]] | None = None

    def of(self, action: str) -> tuple[Predicted, frozenset[str]]:
        """What one kind of fault must show."""
        kinds = {"kill": STUCK, "power:meta": STUCK} | dict(self.kinds or {})
        predicted: Predicted = getattr(self, action.removeprefix("power:"))
        return predicted, kinds.get(action, TWICE)


CASES = (
    Case(
        "in_place",
        "Opening empties the file, and a kill before the write leaves it so. It is never synced: "
        "its name is not durable (drop, data: as if nothing had been done), nor are its bytes "
        "where the name lives (meta: empty).",
        kill=before(r"write\(state"),
        drop=after_the_effect(),
        meta=ever_since(r"open\(state"),
        data=after_the_effect(),
    ),
    Case(
        "in_place_synced",
        "As before, but the bytes are durable from each fsync until the next open empties the "
        "file. fsync does not make its name durable (fsync(2)).",
        kill=before(r"write\(state"),
        drop=after_the_effect(),
        meta=ever_since(r"open\(state", until=r"fsync\(state"),
        data=after_the_effect(),
    ),
    Case(
        "renamed",
        "A kill never meets half a file. When power is lost the name may be there before its "
        "bytes are (meta: an empty file), or not be there (drop, data).",
        drop=after_the_effect(),
        meta=ever_since(r"rename\("),
        data=after_the_effect(),
    ),
    Case(
        "synced_renamed",
        "The bytes are durable before the name is, so it never means half a file; but nothing "
        "makes the rename itself durable.",
        drop=after_the_effect(),
        data=after_the_effect(),
    ),
    Case("synced_folder", "Bytes and name are durable before the effect is asked for."),
    Case(
        "wal_full",
        "sqlite.org/pragma.html#pragma_synchronous: FULL syncs the log after each transaction.",
    ),
    Case(
        "wal_normal",
        "The same page: a transaction committed in WAL mode with NORMAL might roll back when "
        "power is lost, and is durable across crashes of the application. The log's head and its "
        "name are synced, so that data alone loses nothing; the frames are not, until a "
        "checkpoint at the end syncs them.",
        drop=after_the_effect(until=SYNC + r"\(run\.db-wal\)"),
        meta=after_the_effect(until=SYNC + r"\(run\.db-wal\)"),
        kinds={"power:meta": TWICE},
    ),
    Case(
        "delete_full",
        "The same page: EXTRA is like FULL, but also syncs the folder after a rollback journal "
        "was unlinked to commit. Without that, power lost soon after a commit may bring the "
        "journal back, and roll back: until the next transaction syncs the folder for its own.",
        drop=after_the_effect(until=SYNC + r"\(\.\)"),
        data=after_the_effect(until=SYNC + r"\(\.\)"),
        steps=1,
    ),
    Case(
        "delete_extra",
        "The same page: the folder is synced after the journal was unlinked.",
        steps=1,
    ),
    Case(
        "delete_off",
        "The same page: with OFF data is safe when the application crashes, and nothing is "
        "promised when power is lost. Nothing is ever synced: no name, no bytes.",
        drop=after_the_effect(),
        meta=after_the_effect(),
        data=after_the_effect(),
        kinds={"power:meta": TWICE},
    ),
)


STANDS_FOR = {"wal_normal": "wal_full", "delete_extra": "delete_full"}
"""Cases that the ordinary run leaves out, and which ones it has in their place."""


@pytest.mark.parametrize(
    "case",
    [rare(c, name=c.name) if c.name in STANDS_FOR else pytest.param(c, id=c.name) for c in CASES],
)
def test_each_way_to_keep_a_record_loses_what_it_does_not_sync_and_nothing_else(
    tmp_path: Path, case: Case
) -> None:
    """Every profile shows its findings at just the calls that the trace predicts, and each failure
    was seen in a real run too.
    """
    found = explored(shorter(tmp_path, case.name, case.steps), tmp_path / "runs")
    shown: set[str] = set()
    for action in ("kill", *map(str, POWER)):
        predicted, kinds = case.of(action)
        failed = found.failed(action)
        assert failed.keys() == predicted(found.survey), (action, case.why)
        assert {kind for some in failed.values() for kind in some} <= kinds, (action, case.why)
        shown |= {kind for some in failed.values() for kind in some}
    assert {failure for _, _, failure in told(found)} == {
        failure
        for (_, trial), (_, _, failure) in zip(found.trials, told(found), strict=True)
        if trial.real
    } | {frozenset()}
    scenario = load(Target(scenario=f"{SCENARIOS / 'power_loss.py'}:{case.name}")).scenario
    assert shown == set(scenario.finds)
    assert (POWER_ONLY in found.summary.remarks) == (bool(shown) and not found.failed("kill"))
    assert found.summary.power_cuts == 3 * len(list(found.survey.of(CallSeen)))


def told(found: Explored) -> list[tuple[str, str, frozenset[str]]]:
    """Schedules with verdicts and findings."""
    return [
        (
            trial.schedule,
            trial.judgement.verdict,
            frozenset(finding.fingerprint for finding in trial.judgement.roots),
        )
        for _, trial in found.trials
    ]


@pytest.mark.parametrize("name", ["renamed", rare("wal_normal")])
def test_a_disk_that_is_put_back_is_the_disk_that_a_real_run_is_left_with(
    tmp_path: Path, name: str
) -> None:
    """A sample of losses of power, each by a run of its own, is judged as from copies."""
    target = shorter(tmp_path, name, 2)
    copied = explored(target, tmp_path / "copied", max_points=12, seed=1)
    real = explored(target, tmp_path / "real", max_points=12, seed=1, snapshots=False)
    assert {isinstance(fault.action, PowerLoss) for fault, _ in real.trials} == {True, False}
    assert not any(trial.real is False for _, trial in real.trials)
    assert any(trial.real is False for _, trial in copied.trials)
    assert told(copied) == told(real)
    assert {verdict for _, verdict, _ in told(real)} == {"VALID", "INVALID"}


def test_the_token_of_a_loss_of_power_shows_it_again(tmp_path: Path) -> None:
    """Each profile's first finding is REPRODUCED by the command that the report prints."""
    found = explored(shorter(tmp_path, "renamed", 1), tmp_path / "runs")
    tokens: dict[Action, str] = {}
    for finding in found.summary.findings:
        action = parse_schedule(finding.schedule).attempts[0][0].action
        tokens.setdefault(action, finding.replay.split()[-1])
    assert tokens.keys() == set(POWER)
    outcomes = {name: replay(parse_token(token)).outcome for name, token in tokens.items()}
    assert outcomes == dict.fromkeys(POWER, "REPRODUCED")


def test_each_kind_of_fault_has_a_failure_that_a_real_run_showed(tmp_path: Path) -> None:
    """What a loss of power shows is confirmed by one, not by a kill that looks the same."""
    found = explored(shorter(tmp_path, "in_place_synced", 2), tmp_path / "runs")
    failed = {fault.action for fault, trial in found.trials if trial.judgement.findings}
    real = {f.action for f, trial in found.trials if trial.judgement.findings and trial.real}
    assert failed == {Kill(), *POWER}
    assert real == failed


def test_a_loss_of_power_can_be_asked_for_by_its_name(tmp_path: Path) -> None:
    """The schedule that a report prints can be given to --at, without its token."""
    at = "power:meta@rename(state.tmp->state.json)#1+after"
    found = explored(shorter(tmp_path, "renamed", 1), tmp_path / "runs", only=(at,))
    assert [trial.schedule for _, trial in found.trials] == [at]
    assert found.summary.kinds == {"stuck"}
