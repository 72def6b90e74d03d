"""The campaign: survey, plan, trials, verdict, told as a stream of events that others listen to."""

from __future__ import annotations

import time
from collections.abc import Container, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from pathlib import Path

import msgspec

from chaoskit.campaign import jobs
from chaoskit.campaign.baselines import found, learnt, loose_of
from chaoskit.campaign.batches import Batch, singles, together
from chaoskit.campaign.copies import (
    not_looked_at,
    why_no_longer,
    why_no_snapshots,
    why_not_restored,
)
from chaoskit.campaign.events import (
    CampaignEvent,
    Finished,
    SnapshotsGivenUp,
    Started,
    Surveyed,
    Surveying,
    TrialDone,
    WaveStarted,
)
from chaoskit.campaign.folder import discard, identity, open_campaign
from chaoskit.campaign.judging import judge_again, judged
from chaoskit.campaign.meetings import take_note
from chaoskit.campaign.options import Options
from chaoskit.campaign.planning import (
    check_only,
    check_resumes,
    first_schedules,
    next_schedules,
)
from chaoskit.campaign.sharding import (
    CAMPAIGN,
    check_shard,
    most_of,
    put_share,
    share,
    share_of,
)
from chaoskit.campaign.soaking import Soaking, soak_of
from chaoskit.campaign.starting import refuse_unstartable, survey_of
from chaoskit.campaign.store import CLOSED, FURTHER, NO_VIEW, REFUTED, Store, StoredTrial
from chaoskit.campaign.trials import Result
from chaoskit.campaign.workers import Workers
from chaoskit.checkers.check import judge
from chaoskit.checkers.comparison import counted
from chaoskit.explore.classes import representatives
from chaoskit.explore.completion import with_records
from chaoskit.explore.file_work import with_file_work
from chaoskit.explore.plan import noted, window_of
from chaoskit.explore.sampling import sample
from chaoskit.explore.survey import expect
from chaoskit.model.errors import UsageError
from chaoskit.model.events import CallSeen
from chaoskit.model.expectation import Expectation
from chaoskit.model.history import History
from chaoskit.model.points import Point
from chaoskit.model.schedule import Schedule, parse_schedule
from chaoskit.model.secrets import without_secrets
from chaoskit.trace import OUTSIDE
from chaoskit.trial.loading import load, sources

SILENT_S = 10.0
"""For so long nothing is said of undisturbed runs that do not end."""

LOCATED_MOST = 500
"""At so many requests, and calls, the line is looked at, besides the places of findings."""

SUSPECT = {"wrong_inputs", "diverged_state", "lost_effect", "false_success"}
"""Findings that a value which varies from run to run can feign."""


def run(options: Options, executor: Executor | None = None) -> Iterator[CampaignEvent]:
    """Run a campaign, or go on with the unfinished one of the same identity.

    Closing the generator early stops the workers and leaves a campaign that can be gone on with.

    Args:
        options: what to do.
        executor: where trials run; local processes by default.

    Raises:
        UsageError: the target, a point or a service does not exist; a shard cannot be made.
        HarnessError: chaoskit itself failed.
    """
    check_shard(options)
    check_only(options.only)
    loaded = load(options.target)
    check_resumes(options, loaded.scenario)
    files = sources(loaded)
    key = identity(msgspec.json.encode(_essential(options)), files)
    slug = Path(without_secrets(options.target.label)).stem
    store, resumed = open_campaign(Path(options.runs), slug, key, fresh=options.fresh)
    with store:
        if not resumed:
            store.put("options", msgspec.json.encode(options).decode())
            if loaded.scenario.task is not None:
                store.put("forked", "yes")
            store.put("settled", ", ".join(loaded.scenario.settled))
            store.put("resumed_within", _in_words(loaded.scenario.resumed_within))
            if options.shard is not None:
                whole = msgspec.structs.replace(_essential(options), shard=None)
                store.put(CAMPAIGN, identity(msgspec.json.encode(whole), files))
        yield Started(store.folder, loaded.title, resumed, len(store.known()))
        own = Workers(options.jobs, jobs.close_session) if executor is None else None
        campaign = _Campaign(options, store, executor or own)
        try:
            yield from campaign.events()
        except BaseException as error:
            if own is not None:
                own.shutdown(cancel_futures=True)
                own = None
            nothing = store.known() <= {str(Schedule())} and store.get(REFUTED) is None
            if isinstance(error, UsageError) and nothing:
                discard(store)  # nothing was learnt, and the same words would fail again
            raise
        finally:
            if own is not None:
                own.shutdown()


def _in_words(given: str | float | None) -> str:
    """A duration as it was declared; empty where none was."""
    return "" if given is None else given if isinstance(given, str) else f"{given:g} s"


def _essential(options: Options) -> Options:
    """The options without those that do not change what is found."""
    return msgspec.structs.replace(options, fresh=False, jobs=1, runs="", work_root="")


class _Campaign:
    """One campaign while it runs."""

    def __init__(self, options: Options, store: Store, executor: Executor | None) -> None:
        assert executor is not None
        self._options = options
        self._store = store
        self._executor = executor
        self._began = time.monotonic()
        self._before_s = float(store.get("seconds") or 0)
        self._known = store.known()
        self._why = ""
        self._planned = 0
        self._expectation: Expectation | None = None
        self._why_real = ""
        self._plan_file = ""

    def events(self) -> Iterator[CampaignEvent]:
        first, second, expectation = yield from self._survey()
        self._expectation = expectation
        if expectation.problems or not expectation.evidence:
            yield Surveyed(expectation, 0)
            yield self._finish("the survey proves nothing")
            return
        if self._options.soak_s is not None:
            yield from self._soak(first, second, expectation)
            return
        self._choose_way(first, second, expectation)
        points = self._found(first, second)
        wave = first_schedules(self._options, (first, second), expectation, points)
        yield Surveyed(expectation, len(points))
        yield from self._explore(wave)
        self._look_again(first, second, expectation)
        self._locate()
        yield self._finish(self._why)

    def _explore(self, wave: list[Schedule]) -> Iterator[CampaignEvent]:
        """The waves; and again by real kills, if these are seen to refute a snapshot."""
        if self._store.get(REFUTED) and any(not t.real for t in self._store.trials()):
            self._give_up_snapshots(self._why_real)  # it was interrupted before it could
        yield from self._waves(wave)
        refuted = self._store.get(REFUTED)
        if not refuted or self._why_real:
            return
        yield SnapshotsGivenUp(refuted)
        self._give_up_snapshots(refuted)
        yield from self._waves(wave)

    def _give_up_snapshots(self, why: str) -> None:
        """Only trials by real kills of the first wave are kept; they count as before."""
        self._store.forget(t for t in self._store.trials() if t.wave > 1 or not t.real)
        self._known = self._store.known()
        self._put_way(why)

    def _waves(self, wave: list[Schedule]) -> Iterator[CampaignEvent]:
        """One wave after the other, as long as nothing stands against it."""
        self._planned, self._why = 0, ""
        for number in range(1, self._options.depth + 1):
            if number > 1:
                wave = self._next_wave(number - 1)
            if not wave:
                break
            yield from self._run_wave(number, wave)
            if self._why or self._in_vain:
                break

    @property
    def _in_vain(self) -> bool:
        """Whether snapshots are used that are refuted by now."""
        return not self._why_real and self._store.get(REFUTED) is not None

    def _soak(
        self, first: History, second: History, expectation: Expectation
    ) -> Iterator[CampaignEvent]:
        """Random schedules until the time is over, and then the failed ones again."""
        points = self._found(first, second)
        yield Surveyed(expectation, len(points))
        soaking = Soaking(self._store, self._settings(), self._submit)
        asked = soak_of(self._options, first, points)
        for event in soaking.trials(asked, self._out_of_time):
            self._store.put("seconds", f"{self._seconds():.3f}")
            yield TrialDone(event) if isinstance(event, StoredTrial) else event
        if self._out_of_time():
            self._why = self._time_limit
        self._look_again(first, second, expectation)
        if not self._why:
            yield from soaking.repeats(asked, self._out_of_time)
        self._locate()
        yield self._finish(self._why)

    def _look_again(self, first: History, second: History, expectation: Expectation) -> None:
        """Before values or files are called wrong: do undisturbed runs differ in them by now?

        A time of day that the surveys had in common may be another one since.
        """
        kinds = {f.kind for t in self._store.trials() for f in t.judgement.findings}
        if not kinds & SUSPECT:
            return
        done = self._do(jobs.Survey(self._settings()), jobs.SurveyDone)
        later, norm = _histories(done.results), (*self._store.norm(), *_histories(done.norm))
        scenario = load(self._options.target).scenario
        fresh = expect(first, second, scenario, *later, norm=norm)
        fresh = with_records(fresh, (first, second))
        fresh = with_file_work(fresh, (first, second), scenario.recorded)
        fresh = msgspec.structs.replace(fresh, varying=expectation.varying)
        if fresh.volatile != expectation.volatile or fresh.problems:
            self._store.put_survey(first, second, fresh, norm)
            judge_again(self._store)

    def _locate(self) -> None:
        """Which lines of a Python task are running where the findings are; and at requests and
        calls of the baseline run, so that a line that makes several of them is known.
        """
        schedules = [
            parse_schedule(t.schedule) for t in self._store.trials() if t.judgement.findings
        ]
        points = {
            str(f.point) for s in schedules for f in s.faults_of(1) if not (s.timed or f.is_prelude)
        }
        survey = self._store.survey()
        if points and survey is not None:
            calls = [body.call for _, body in survey[0].of(CallSeen) if not body.sends]
            points |= {str(window_of(b, "received")) for _, b in survey[0].requests[:LOCATED_MOST]}
            points |= {*calls[:LOCATED_MOST]}
            untraced = msgspec.structs.replace(self._settings(), trace=False)
            located = self._do(jobs.Locate(untraced, tuple(sorted(points))), jobs.LocateDone)
            self._store.put_locations(located.locations)

    def _finish(self, why: str) -> Finished:
        seconds = self._seconds()
        self._store.put("seconds", f"{seconds:.3f}")
        self._store.put("finished", why or "complete")
        return Finished(self._store.folder, seconds, why)

    def _seconds(self) -> float:
        return self._before_s + time.monotonic() - self._began

    def _survey(self) -> Generator[Surveying, None, tuple[History, History, Expectation]]:
        stored = self._store.survey()
        if stored is not None:
            return stored
        surveyed = self._submit(jobs.Survey(self._settings()))
        began = time.monotonic()
        while not wait([surveyed], timeout=SILENT_S).done:
            yield Surveying(time.monotonic() - began)
        done = jobs.outcome(surveyed.result(), jobs.SurveyDone)
        self._store.put("restorable", "yes" if done.restorable else "no")
        self._store.put(NO_VIEW, done.no_view)
        self._store.put(CLOSED, "\n".join(done.closed))
        loaded, norm = load(self._options.target), _histories(done.norm)
        first, second, expectation = learnt(
            self._store,
            _histories(done.results),
            lambda runs: survey_of(runs, loaded, norm, expected=self._options.expect),
            self._further,
            self._options.mechanisms,
        )
        self._store.put_survey(first, second, expectation, norm)
        if not expectation.problems:
            # the control: an undisturbed run is judged as well
            judgement = judge(first, expectation, Schedule())
            control = StoredTrial(str(Schedule()), 0, 0, judgement, landed=True, real=True)
            self._store.put_trial(control, first.encode())
        return first, second, expectation

    def _choose_way(self, first: History, second: History, expectation: Expectation) -> None:
        """From snapshots where that is exact; by a real kill each where it is not, and say why."""
        seen = why_not_restored((first, second))
        self._put_way(why_no_snapshots(self._store, self._options, expectation) or seen)

    def _put_way(self, why: str) -> None:
        self._why_real = why
        self._store.put("real", why)

    def _found(self, first: History, second: History) -> list[Point]:
        """The points that undisturbed runs pass, counted for the report."""
        known = found(self._store, first, second, self._options.mechanisms)
        self._store.put("points.total", str(len(known)))
        return known

    def _next_wave(self, wave: int) -> list[Schedule]:
        trials = self._store.histories(wave)
        schedules, total = next_schedules(trials, wave + 1, self._options)
        self._store.put(FURTHER.format(wave + 1), str(total))
        return schedules

    def _run_wave(self, number: int, wave: list[Schedule]) -> Iterator[CampaignEvent]:
        self._plan_file = "" if self._why_real else str(self._store.put_plan(number, wave))
        mine, why = self._affordable(number, self._mine(number, wave))
        waiting = [
            (place, schedule) for place, schedule in mine if str(schedule) not in self._known
        ]
        yield WaveStarted(number, len(mine), len(mine) - len(waiting))
        check = representatives([schedule for _, schedule in mine], self._options.seed)
        for trial in self._run_batches(number, self._batches(number, waiting), check):
            yield TrialDone(trial)
        if not (self._why_real or self._in_vain):
            for _ in self._run_batches(number, singles(not_looked_at(self._store, number)), None):
                pass  # it was counted already; what a real kill says takes its place
        self._why = self._why or why

    def _run_batches(
        self, number: int, batches: list[Batch], check: Container[Schedule] | None
    ) -> Iterator[StoredTrial]:
        """Run trials of a wave, as long as nothing stands against it; ``check``: those that a real
        kill looks at too, where they are found right; None: all.
        """
        batches.reverse()
        running: dict[Future[bytes], Batch] = {}
        while batches or running:
            while batches and len(running) < self._at_once and not self._out_of_time():
                batch = batches.pop()
                further = [s for _, s in batch if check is None or s in check]
                running[self._submit(self._trials(number, batch, further))] = batch
            if not running:
                self._why = self._time_limit
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                batch, done = running.pop(future), jobs.outcome(future.result(), jobs.RunsDone)
                for (position, schedule), result in zip(batch, done.results, strict=True):
                    yield self._book(number, position, schedule, result)
                if self._in_vain:
                    batches.clear()
                    for queued in [other for other in running if other.cancel()]:
                        del running[queued]

    @property
    def _at_once(self) -> int:
        """How many jobs are handed out: one, where two tasks would meet in files elsewhere."""
        survey = self._store.survey()
        alone = self._store.get(NO_VIEW) and survey and noted(survey[:2], OUTSIDE)
        return 1 if alone else 2 * self._options.jobs

    def _affordable(self, number: int, mine: Batch) -> tuple[Batch, str]:
        """What of a wave the limit of trials leaves, and why no further wave follows, if so.

        A sample, not the first ones: those would all be kills at the beginning of the task.
        """
        most = most_of(self._options.max_trials, self._options.shard)
        left = len(mine) if most is None else max(most - self._planned, 0)
        self._planned += min(left, len(mine))
        if left >= len(mine):
            return mine, ""
        chosen = sample([schedule for _, schedule in mine], left, self._options.seed + number - 1)
        kept = set(chosen)
        why = f"the limit of {counted(self._options.max_trials or 0, 'trial')} was reached"
        return [(place, schedule) for place, schedule in mine if schedule in kept], why

    def _mine(self, number: int, wave: list[Schedule]) -> Batch:
        """The trials of a wave that are this campaign's own, with their places in it."""
        shard = self._options.shard
        if shard is None or number > 1:
            return list(enumerate(wave))
        places = share_of(self._store)
        if places is None:
            places = share(wave, self._worlds(), shard)
            put_share(self._store, wave, places)
        return [(place, wave[place]) for place in places]

    def _batches(self, number: int, waiting: Batch) -> list[Batch]:
        """What a worker is given at a time."""
        if self._why_real or not waiting:
            return singles(waiting)
        worlds = self._worlds() if number == 1 else {}
        whole = 1 < number < self._options.depth
        return together(waiting, worlds, self._options.jobs, whole=whole)

    def _worlds(self) -> dict[str, str]:
        """The world after each fault of the first wave, by schedule, as far as it is copied.

        One worker looks at the first attempt for that. Each of them goes on from copies of its own:
        what a task stores of paths and ports holds for one worker only.
        """
        if self._why_real:
            return {}
        if self._store.get("worlds") is None:
            recording = jobs.Record(
                self._settings(wave=1), str(self._store.expectation_file), self._plan_file
            )
            worlds = self._do(recording, jobs.RecordDone).worlds
            self._store.put("worlds", msgspec.json.encode(worlds).decode())
        return msgspec.json.decode(self._store.get("worlds") or "{}", type=dict[str, str])

    @property
    def _time_limit(self) -> str:
        return f"the time limit of {self._options.max_time_s} s was reached"

    def _out_of_time(self) -> bool:
        limit = self._options.max_time_s
        return limit is not None and self._seconds() > limit

    def _book(self, wave: int, position: int, schedule: Schedule, result: Result) -> StoredTrial:
        judgement = result.judgement
        assert judgement is not None
        landed = result.landed == schedule.faults
        if not landed:
            assert self._expectation is not None, "surveyed before"
            history = History.decode(result.history)
            loose = frozenset(loose_of(self._store))
            judgement = judged(history, self._expectation, schedule, self._options, loose)
        if any(finding.kind == "stuck" for finding in judgement.findings):
            refuse_unstartable(History.decode(result.history), schedule)
        trial = StoredTrial(
            str(schedule),
            wave,
            position,
            judgement,
            landed,
            result.real,
            result.world,
            result.shared,
        )
        self._store.put_trial(trial, result.history)
        take_note(self._store, result.history)
        self._doubt_copies(result)
        self._store.put("seconds", f"{self._seconds():.3f}")
        return trial

    def _doubt_copies(self, result: Result) -> None:
        """See whether a trial shows that copies of this task's world are not the whole of it."""
        if self._why_real or self._in_vain:
            return
        why = result.refuted or why_no_longer(result.history)
        if why:
            self._store.put(REFUTED, why)

    def _trials(self, wave: int, batch: Batch, check: Iterable[Schedule] = ()) -> jobs.Trials:
        return jobs.Trials(
            settings=self._settings(wave),
            expectation=str(self._store.expectation_file),
            schedules=tuple(str(schedule) for _, schedule in batch),
            plan=self._plan_file,
            check=tuple(map(str, check)),
            keep=tuple(str(self._store.artefacts(wave, position)) for position, _ in batch),
        )

    def _settings(self, wave: int = 0) -> jobs.Settings:
        return jobs.settings_of(self._options, wave, self._expectation)

    def _further(self, number: int) -> list[History]:
        """So many undisturbed runs, besides those of the survey."""
        job = jobs.Runs(self._settings(), (str(Schedule()),) * number)
        return _histories(self._do(job, jobs.RunsDone).results)

    def _submit(self, job: jobs.Job) -> Future[bytes]:
        return self._executor.submit(jobs.perform, jobs.encoded(job))

    def _do(self, job: jobs.Job, kind: type[jobs.D]) -> jobs.D:
        return jobs.outcome(self._submit(job).result(), kind)


def _histories(results: Iterable[Result]) -> list[History]:
    return [History.decode(result.history) for result in results]
