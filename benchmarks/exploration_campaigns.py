"""The rows of chaoskit: as it is, and without copies, forks and sharing."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.exploration_rows import ROOT, Pace, Row, Setting, spread
from chaoskit.campaign.events import Surveyed, TrialDone
from chaoskit.campaign.folder import LATEST
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store, StoredTrial
from chaoskit.explore.plan import Mechanism, sweep
from chaoskit.model.history import History
from chaoskit.model.points import Point
from chaoskit.model.schedule import kill
from chaoskit.model.token import CommandSpec, Target

COLD = Path(__file__).with_name("forty_cold.py")
CAMPAIGN_TIMEOUT_S = 1800

Worlds = Mapping[str, str]
"""The name of the durable state in which each schedule leaves the task."""


def explore(setting: Setting, mechanism: Mechanism, jobs: int) -> tuple[Row, Worlds]:
    """Run ``chaoskit run`` as a user does, and count what is in its store.

    Each worker names the states of its own recording, and a database differs from one recording to
    the next in bytes without a meaning; so only a campaign of one worker counts states exactly.

    Raises:
        RuntimeError: it came to no verdict.
    """
    words = ["run", setting.scenario, "--mechanisms", mechanism, "--runs", str(setting.runs)]
    words += ["--jobs", str(jobs), "--fresh", "--quiet"]
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "chaoskit.cli.main", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=CAMPAIGN_TIMEOUT_S,
        check=False,
    )
    seconds = time.perf_counter() - began
    if done.returncode not in {0, 1}:
        raise RuntimeError(f"chaoskit {' '.join(words)}: {(done.stderr or done.stdout)[-2000:]}")
    with Store((setting.runs / LATEST).resolve()) as store:
        trials = [t for t in store.trials() if t.wave > 0]
    row = Row(
        name=f"chaoskit, {mechanism}, -j {jobs}",
        trials=len(trials),
        states=len({t.world for t in trials if t.world and not t.shared}),
        seconds=seconds,
        measured=len(trials),
        found=duplicates(trials),
        details={
            "trials_per_second": len(trials) / seconds,
            "resumes": sum(not t.shared for t in trials),
            "real_kills": sum(t.real for t in trials),
        },
    )
    return row, {t.schedule: t.world for t in trials}


def duplicates(trials: Iterable[StoredTrial]) -> int:
    """How many of ``trials`` have an effect that happened twice."""
    kinds = ({f.kind for f in trial.judgement.findings} for trial in trials)
    return sum("duplicate_effect" in each for each in kinds)


def cold_surveys(setting: Setting) -> tuple[History, History]:
    """Two undisturbed cold runs with every call on record; nothing is killed."""
    events = run(_cold(setting))
    assert isinstance(events, Generator)
    for event in events:
        if isinstance(event, Surveyed):
            events.close()
    with Store((setting.runs / LATEST).resolve()) as store:
        survey = store.survey()
    assert survey is not None, "the survey was told of, so it is stored"
    return survey[0], survey[1]


def cold_prefixes(setting: Setting, surveys: tuple[History, History], states: float) -> Row:
    """(a) Each call point by a real kill of a cold run and a cold resume, all of them chaoskit's.

    What differs from its first row is that nothing is copied, forked or shared. It waits until
    every connection has ended and resets its services, which the loop with strace does not.
    """
    found, _ = sweep(surveys, ("calls",))
    paced = _paced(_cold(setting, only=spread(found, setting.sample)))
    return Row(
        name="(a) cold re-runs, chaoskit's kills",
        trials=len(found),
        states=states,
        seconds=paced.pace.seconds(len(found)),
        measured=len(paced.trials),
        found=duplicates(paced.trials),
        details={"trials_per_second": paced.pace.rate},
    )


@dataclass(frozen=True, slots=True)
class _Paced:
    trials: list[StoredTrial]
    pace: Pace


def _paced(options: Options) -> _Paced:
    """Run a campaign, and see how fast its trials come."""
    began = time.perf_counter()
    trials, ends = [], []
    for event in run(options):
        if isinstance(event, TrialDone):
            trials.append(event.trial)
            ends.append(time.perf_counter())
    return _Paced(trials, Pace.of(began, ends))


def _cold(setting: Setting, only: Sequence[Point] = ()) -> Options:
    """The task as a command, so that each attempt is a new Python; every trial a real kill."""
    command = (sys.executable, str(COLD), setting.journal)
    return Options(
        target=Target(command=CommandSpec(command=command, services=("payments",))),
        mechanisms=("calls",),
        only=tuple(str(kill(point)) for point in only),
        snapshots=False,
        jobs=setting.jobs,
        runs=str(setting.runs),
        fresh=True,
    )
