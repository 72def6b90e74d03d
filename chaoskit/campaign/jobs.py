"""What a worker does: one job in, one result out, both plain bytes, so that any executor will do.

A worker process keeps its supervisor (services, launcher, work folder) from one job to the next.
"""

from __future__ import annotations

import asyncio
import atexit
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from chaoskit.campaign.trials import Darkroom, Result, real_trial, told
from chaoskit.model.errors import ChaoskitError, HarnessError, UsageError, described
from chaoskit.model.expectation import Expectation
from chaoskit.model.history import History
from chaoskit.model.points import parse_point
from chaoskit.model.schedule import Schedule, parse_schedule
from chaoskit.model.token import Target
from chaoskit.trial.conduct import FIRST_TIMEOUT_S, Conduct
from chaoskit.trial.loading import load
from chaoskit.trial.supervisor import Supervisor
from chaoskit.trial.workspace import default_root

STATE_BYTES_MAX = 20 * 1024 * 1024
"""A failed trial's work folder that is larger is not kept."""

SURVEY_FACTOR = 20
SURVEY_MARGIN_S = 10.0


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Trials to run. Without an ``expectation`` it is the survey's two runs, not judged.

    ``expectation`` is the file that holds it, written once and read once by each worker: it may
    be large. ``plan`` is the file with all schedules of the wave, for those who run them from
    snapshots. ``trace``: every call is told of, ``lines``: every line of a Python task;
    ``resume_after_s``: so long after each kill the task is resumed.
    ``check``: those of them that are run by a real kill too, if they are found right.
    ``record``: only look at the first attempt, for which states are equal.
    ``locate``: only see which line of the task is running at these points.
    ``keep`` names the folder for each trial's artefacts, should it fail. ``take``: only so many
    leading items of the inputs. ``varying``: `Expectation.varying`.
    """

    target: Target
    seed: int
    schedules: tuple[str, ...] = ()
    expectation: str = ""
    plan: str = ""
    check: tuple[str, ...] = ()
    timeout_s: float | None = None
    locate: tuple[str, ...] = ()
    trace: bool = False
    lines: bool = False
    record: bool = False
    skip_sleeps: bool = False
    resume_after_s: int = 0
    keep: tuple[str, ...] = ()
    work_root: str = ""
    take: int | None = None
    varying: tuple[str, ...] = ()


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a job.

    ``restorable``: every service can go back to a saved world. ``no_view``: why the task does not
    run in a view of the file system; empty where it does. ``closed``: what it can only read there.
    ``locations``: file, line and
    function of a Python task's own code, by point. ``worlds``: the state after the last fault, by
    schedule, of what was recorded. ``error`` is the harness's own failure, with the kind of its
    class.
    """

    results: tuple[Result, ...] = ()
    restorable: bool = False
    no_view: str = ""
    closed: tuple[str, ...] = ()
    locations: dict[str, tuple[str, int, str]] = {}
    worlds: dict[str, str] = {}
    error: str = ""
    error_code: int = 0


def checked(done: Done) -> Done:
    """What came of a job that was run.

    Raises:
        UsageError: the job could not be run as asked.
        HarnessError: chaoskit failed at it.
    """
    if done.error:
        raise (UsageError if done.error_code == UsageError.exit_code else HarnessError)(done.error)
    return done


_sessions: list[Session] = []


def perform(job: bytes) -> bytes:
    """Run one encoded `Job` in this process; an encoded `Done`. What executors call."""
    if not _sessions:
        _sessions.append(Session())
        atexit.register(close_session)
    return msgspec.msgpack.encode(_sessions[0].perform(msgspec.msgpack.decode(job, type=Job)))


def close_session() -> None:
    """End what `perform` keeps in this process; at the latest when Python exits."""
    while _sessions:
        _sessions.pop().close()


class Session:
    """A worker's supervisor and the event loop on which it lives."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._key: tuple[Any, ...] = ()
        self._supervisor: Supervisor | None = None
        self._darkroom: tuple[str, Darkroom] | None = None

    def perform(self, job: Job) -> Done:
        """Run one job to its end; never raises but for an interrupt."""
        try:
            # Not Runner.run: it builds the repr of the whole result for its signal handling.
            return self._runner.get_loop().run_until_complete(self._perform(job))
        except ChaoskitError as error:
            self._drop()
            return Done(error=str(error), error_code=error.exit_code)
        except (OSError, MemoryError) as error:
            self._drop()
            where = f"; work folders are in {job.work_root or default_root()}"
            return Done(error=described(error) + where, error_code=3)
        except Exception as error:  # noqa: BLE001 - reported as ours, never as the task's
            self._drop()
            return Done(error=f"{type(error).__name__}: {error}", error_code=3)

    async def _perform(self, job: Job) -> Done:
        supervisor = await self._ready(job)
        schedules = [parse_schedule(text) for text in job.schedules]
        folders = dict(zip(schedules, job.keep, strict=False))
        expectation = _expectation(job.expectation) if job.expectation else None
        supervisor.conduct = Conduct(
            timeout_s=_timeout(job, supervisor, expectation),
            calls=job.trace,
            lines=job.lines,
            skip_sleeps=job.skip_sleeps,
            resume_after_s=job.resume_after_s,
            varying=job.varying,
        )

        def keep(schedule: Schedule, history: History) -> None:
            if schedule in folders:
                _keep(Path(folders[schedule]), supervisor, history, schedule)

        if job.locate:
            located = await supervisor.locate(map(parse_point, job.locate))
            return Done(
                locations={str(p): (at.file, at.line, at.function) for p, at in located.items()}
            )
        if expectation is None and not schedules:
            surveys = await supervisor.survey()
            return Done(
                results=tuple(map(told, surveys)),
                restorable=supervisor.can_snapshot,
                no_view=supervisor.no_view,
                closed=supervisor.closed,
            )
        if expectation is None:
            return Done(results=tuple([told(await supervisor.run(s)) for s in schedules]))
        if not job.plan:
            trials = [await real_trial(supervisor, s, expectation, keep) for s in schedules]
            return Done(results=tuple(trials))
        darkroom = self._darkroom_for(job, supervisor, expectation)
        if job.record:
            return Done(worlds=await darkroom.record())
        check = set(job.check)
        trials = [await darkroom.trial(s, keep, check=str(s) in check) for s in schedules]
        return Done(results=tuple(trials))

    def _darkroom_for(self, job: Job, supervisor: Supervisor, expectation: Expectation) -> Darkroom:
        """The snapshots that belong to this job's plan."""
        if self._darkroom is None or self._darkroom[0] != job.plan:
            texts = msgspec.json.decode(Path(job.plan).read_bytes(), type=list[str])
            schedules = [parse_schedule(text) for text in texts]
            self._darkroom = job.plan, Darkroom(supervisor, schedules, expectation)
        return self._darkroom[1]

    async def _ready(self, job: Job) -> Supervisor:
        key = (msgspec.json.encode(job.target), job.seed, job.work_root, job.take)
        if self._supervisor is None or self._key != key:
            await self._close_supervisor()
            root = Path(job.work_root) if job.work_root else None
            fresh = Supervisor(load(job.target, job.take), job.seed, root)
            self._supervisor = await fresh.__aenter__()
            self._key = key
        return self._supervisor

    async def _close_supervisor(self) -> None:
        supervisor, self._supervisor, self._darkroom = self._supervisor, None, None
        if supervisor is not None:
            await supervisor.__aexit__(None, None, None)

    def _drop(self) -> None:
        """After a failure of ours its state is unknown: the next job gets a new supervisor."""
        self._runner.run(self._close_supervisor())

    def close(self) -> None:
        """End every process and remove every folder of this session."""
        self._runner.run(self._close_supervisor())
        self._runner.close()


def trial_timeout_s(expectation: Expectation) -> float:
    """How long an attempt may take where the scenario does not say."""
    return SURVEY_MARGIN_S + SURVEY_FACTOR * expectation.seconds


@lru_cache(maxsize=1)
def _expectation(file: str) -> Expectation:
    return msgspec.json.decode(Path(file).read_bytes(), type=Expectation)


def _timeout(job: Job, supervisor: Supervisor, expectation: Expectation | None) -> float:
    own = supervisor.own_timeout_s
    if job.timeout_s is not None:
        return job.timeout_s
    if own is not None:
        return own
    if expectation is None:
        return FIRST_TIMEOUT_S
    return trial_timeout_s(expectation)


def _keep(folder: Path, supervisor: Supervisor, history: History, schedule: Schedule) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "schedule.txt").write_text(f"{schedule}\n", encoding="utf-8")
    (folder / "history.json").write_bytes(msgspec.json.format(history.encode(), indent=1))
    for _, ended in history.attempts:
        name = f"attempt-{ended.attempt}.output.txt"
        (folder / name).write_text(ended.output_tail, encoding="utf-8", errors="backslashreplace")
    if not supervisor.copy_state(folder / "state", STATE_BYTES_MAX):
        (folder / "state-too-large.txt").write_text(
            f"the work folder was larger than {STATE_BYTES_MAX} bytes\n", encoding="utf-8"
        )
