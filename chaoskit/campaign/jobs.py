"""What a worker does: one job in, one result out, both plain bytes, so that any executor will do.

A worker process keeps its supervisor (services, launcher, work folder) from one job to the next.
"""

from __future__ import annotations

import asyncio
import atexit
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from chaoskit.campaign.mechanisms import traced
from chaoskit.campaign.options import Options
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


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How every run of a job is made.

    ``trace``: every call is told of, ``lines``: every line of a Python task;
    ``resume_after_s``: so long after each kill the task is resumed. ``take``: only so many leading
    items of the inputs. ``another_day``: the second baseline run may be on one. ``varying``:
    `Expectation.varying`.
    """

    target: Target
    seed: int
    timeout_s: float | None = None
    trace: bool = False
    lines: bool = False
    skip_sleeps: bool = False
    another_day: bool = False
    resume_after_s: int = 0
    work_root: str = ""
    take: int | None = None
    varying: tuple[str, ...] = ()


def settings_of(
    options: Options, wave: int = 0, expectation: Expectation | None = None
) -> Settings:
    """How a campaign's runs are made.

    Args:
        options: of the campaign.
        wave: which its runs belong to; 0: to none of them. Those of the last one need not tell of
            their points.
        expectation: what the baselines taught, if they were run.
    """
    tell = wave < options.depth
    return Settings(
        target=options.target,
        seed=options.seed,
        timeout_s=options.timeout_s,
        trace="calls" in options.mechanisms and (tell or judged_by_calls(expectation)),
        lines=tell and "lines" in options.mechanisms,
        skip_sleeps=options.skip_sleeps,
        another_day=traced().works,
        resume_after_s=options.resume_after_s,
        work_root=options.work_root,
        varying=expectation.varying if expectation is not None else (),
    )


def judged_by_calls(expectation: Expectation | None) -> bool:
    """Whether the calls of every attempt must be known to judge a trial."""
    return expectation is not None and expectation.file_work is not None


class Survey(msgspec.Struct, frozen=True, tag=True):
    """The two undisturbed runs that a campaign begins with."""

    settings: Settings


class Runs(msgspec.Struct, frozen=True, tag=True):
    """Runs by real kills that nobody judges here."""

    settings: Settings
    schedules: tuple[str, ...]


class Trials(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Trials, judged by the ``expectation``: a file, written once and read once by each worker.

    ``plan`` is the file with all schedules of the wave, for those who run them from snapshots;
    empty: real kills. ``check``: those of them that are run by a real kill too, if they are found
    right. ``keep`` names the folder for each trial's artefacts, should it fail.
    """

    settings: Settings
    expectation: str
    schedules: tuple[str, ...]
    plan: str = ""
    check: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()


class Record(msgspec.Struct, frozen=True, tag=True):
    """Look at the first attempt only: for which schedules of the ``plan`` are states equal?"""

    settings: Settings
    expectation: str
    plan: str


class Locate(msgspec.Struct, frozen=True, tag=True):
    """See which line of the task is running at these points."""

    settings: Settings
    points: tuple[str, ...]


Job = Survey | Runs | Trials | Record | Locate


class SurveyDone(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The two runs. ``norm``: those that say what is expected, where these do not.
    ``restorable``: every service can go back to a saved world. ``no_view``: why the task does not
    run in a view of the file system; empty where it does. ``closed``: what it can only read there.
    """

    results: tuple[Result, ...]
    norm: tuple[Result, ...]
    restorable: bool
    no_view: str
    closed: tuple[str, ...]


class RunsDone(msgspec.Struct, frozen=True, tag=True):
    """What came of each schedule, in their order."""

    results: tuple[Result, ...]


class RecordDone(msgspec.Struct, frozen=True, tag=True):
    """The state after the last fault, by schedule, of what was recorded."""

    worlds: dict[str, str]


class LocateDone(msgspec.Struct, frozen=True, tag=True):
    """File, line and function of a Python task's own code, by point: of the line that runs there,
    and of its callers.
    """

    locations: dict[str, tuple[tuple[str, int, str], ...]]


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The harness's own failure, with the exit code of its class."""

    error: str
    exit_code: int


Done = SurveyDone | RunsDone | RecordDone | LocateDone | Failed
D = TypeVar("D", SurveyDone, RunsDone, RecordDone, LocateDone)


def encoded(job: Job) -> bytes:
    """The job as `perform` takes it."""
    return msgspec.msgpack.encode(job)


def outcome(done: bytes, kind: type[D]) -> D:
    """What came of an encoded job.

    Raises:
        UsageError: the job could not be run as asked.
        HarnessError: chaoskit failed at it.
    """
    return checked(msgspec.msgpack.decode(done, type=Done), kind)


def checked(done: Done, kind: type[D]) -> D:
    """``done``, which is of this kind; for what it raises see `outcome`."""
    if isinstance(done, Failed):
        raise (UsageError if done.exit_code == UsageError.exit_code else HarnessError)(done.error)
    assert isinstance(done, kind), f"{type(done).__name__} in place of {kind.__name__}"
    return done


_sessions: list[Session] = []


def perform(job: bytes) -> bytes:
    """Run one `encoded` job in this process. What executors call; `outcome` reads the result."""
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
            return Failed(str(error), error.exit_code)
        except (OSError, MemoryError) as error:
            self._drop()
            where = f"; work folders are in {job.settings.work_root or default_root()}"
            return Failed(described(error) + where, HarnessError.exit_code)
        except Exception as error:  # noqa: BLE001 - reported as ours, never as the task's
            self._drop()
            return Failed(f"{type(error).__name__}: {error}", HarnessError.exit_code)

    async def _perform(self, job: Job) -> Done:
        supervisor = await self._ready(job.settings)
        supervisor.conduct = _conduct(job, supervisor)
        match job:
            case Survey():
                return SurveyDone(
                    results=tuple(map(told, await supervisor.survey())),
                    norm=tuple(map(told, await supervisor.norm())),
                    restorable=supervisor.can_snapshot,
                    no_view=supervisor.no_view,
                    closed=supervisor.closed,
                )
            case Runs():
                schedules = map(parse_schedule, job.schedules)
                return RunsDone(tuple([told(await supervisor.run(s)) for s in schedules]))
            case Trials():
                return RunsDone(await self._trials(job, supervisor))
            case Record():
                return RecordDone(await self._darkroom_for(job, supervisor).record())
            case Locate():
                found = await supervisor.locate(map(parse_point, job.points))
                return LocateDone({str(point): stack for point, stack in found.items()})

    async def _trials(self, job: Trials, supervisor: Supervisor) -> tuple[Result, ...]:
        schedules = [parse_schedule(text) for text in job.schedules]
        folders = dict(zip(schedules, job.keep, strict=False))

        def keep(schedule: Schedule, history: History) -> None:
            if schedule in folders:
                _keep(Path(folders[schedule]), supervisor, history, schedule)

        if not job.plan:
            expectation = _expectation(job.expectation)
            real = [await real_trial(supervisor, s, expectation, keep) for s in schedules]
            return tuple(real)
        darkroom, check = self._darkroom_for(job, supervisor), set(job.check)
        trials = [await darkroom.trial(s, keep, check=str(s) in check) for s in schedules]
        return tuple(trials)

    def _darkroom_for(self, job: Trials | Record, supervisor: Supervisor) -> Darkroom:
        """The snapshots that belong to this job's plan."""
        if self._darkroom is None or self._darkroom[0] != job.plan:
            texts = msgspec.json.decode(Path(job.plan).read_bytes(), type=list[str])
            schedules = [parse_schedule(text) for text in texts]
            darkroom = Darkroom(supervisor, schedules, _expectation(job.expectation))
            self._darkroom = job.plan, darkroom
        return self._darkroom[1]

    async def _ready(self, settings: Settings) -> Supervisor:
        target, take = settings.target, settings.take
        key = (msgspec.json.encode(target), settings.seed, settings.work_root, take)
        if self._supervisor is None or self._key != key:
            await self._close_supervisor()
            root = Path(settings.work_root) if settings.work_root else None
            fresh = Supervisor(load(target, take), settings.seed, root)
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


def _conduct(job: Job, supervisor: Supervisor) -> Conduct:
    settings = job.settings
    return Conduct(
        timeout_s=_timeout_s(job, supervisor.own_timeout_s),
        calls=settings.trace,
        lines=settings.lines,
        skip_sleeps=settings.skip_sleeps,
        another_day=settings.another_day,
        resume_after_s=settings.resume_after_s,
        varying=settings.varying,
        digests=_expectation(job.expectation).digests if isinstance(job, Trials | Record) else {},
    )


def _timeout_s(job: Job, own: float | None) -> float:
    if job.settings.timeout_s is not None:
        return job.settings.timeout_s
    if own is not None:
        return own
    if isinstance(job, Trials | Record):
        return trial_timeout_s(_expectation(job.expectation))
    return FIRST_TIMEOUT_S


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
