"""The soak of a campaign: random schedules, by real kills, for as long as was asked for.

Schedules come in one fixed order, which the seed decides, and each trial is booked under its number
in it; so a soak that was interrupted goes on with the numbers that are not there yet.

A later fault often finds that the task is done. Such a trial is judged as the shorter schedule that
did take place, which it is; and where nothing landed at all it is an undisturbed run, and does not
count as a trial of the soak.

Schedules that failed are repeated, to tell steady findings from flaky ones. That is a part of the
soak's time: no trial begins any more once the rest of it is what the repeats will take, and no
repeat begins that would end after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, TypeVar

import msgspec

from chaoskit.campaign.events import RepeatsStarted, SoakStarted
from chaoskit.campaign.jobs import Job, RunsDone, Settings, Trials, judged_by_calls, outcome
from chaoskit.campaign.pacing import Clock, Pace, Reserve
from chaoskit.campaign.planning import kinds_of
from chaoskit.campaign.repeating import REPEATS, Likeness, like, summed
from chaoskit.campaign.store import SOAKED_S, Soaked, Store, StoredTrial
from chaoskit.campaign.trials import Result
from chaoskit.checkers.check import judge
from chaoskit.explore.faults import at_points, ground_of, misbehaviours, preludes
from chaoskit.explore.landed import part_that_landed
from chaoskit.explore.plan import late_landings, power_cuts, several_processes
from chaoskit.explore.soak import schedules
from chaoskit.model.actions import POWER, KillLeader
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Judgement
from chaoskit.model.history import History
from chaoskit.model.points import Point
from chaoskit.model.schedule import Fault, Schedule, parse_schedule
from chaoskit.trial.loading import load

if TYPE_CHECKING:
    from chaoskit.campaign.options import Options

KILLS_MOST = 3
"""How many kills a trial of a soak has at most, where nothing else is asked for."""

WAVE = 1
"""Under which wave the trials of a soak are stored."""

KEPT_MOST = 20
"""Of how many failed trials the artefacts are kept."""

REPEATED_MOST = 20
"""How many schedules that failed are repeated: in turn from each finding that was made."""

DRAWN_FROM = "soak.faults"
"""Under which name the store keeps how many faults besides plain kills were drawn from."""

RUN_S = "soak.run_s"
"""Under which name the store keeps how long an undisturbed run takes."""

NOTHING = str(Schedule())

T = TypeVar("T")

_BADNESS = {"VALID": 0, "UNKNOWN": 1, "INVALID": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Soak:
    """What a soak is asked to do.

    Args:
        points: where a kill may land.
        faults: further ones to draw from.
        preludes: what may be done before a resume.
        misdeeds: what services may do to requests of the first attempt.
        seed: decides the order of schedules.
        kills_max: how many attempts of a trial suffer a fault at most.
        seconds: the wall time of the whole soak, its repeats included.
        most: no trial has this number or a higher one; None: there is always another one.
        ahead: how many jobs the workers have at a time.
    """

    points: Sequence[Point]
    faults: Sequence[Fault]
    preludes: Sequence[Fault]
    misdeeds: Sequence[Fault]
    seed: int
    kills_max: int
    seconds: float
    most: int | None
    ahead: int


def soak_of(options: Options, first: History, known: Sequence[Point]) -> Soak:
    """What a campaign's options ask for: everything that was found is drawn from.

    Args:
        options: of the campaign.
        first: an undisturbed run.
        known: the points that undisturbed runs pass.
    """
    faults = []
    if several_processes(known):
        faults += [Fault(KillLeader(), point) for point in known]
    if "windows" in options.mechanisms:
        settled = load(options.target).scenario.settled
        faults += late_landings(first, settled, options.late)
    if options.power_loss:
        faults += power_cuts(first, POWER)
    scenario = load(options.target).scenario
    kinds, ground = (
        kinds_of(options, scenario),
        ground_of(scenario, first, known, options.resume_after_s),
    )
    return Soak(
        points=known,
        faults=[*faults, *at_points(ground, kinds)],
        preludes=preludes(ground, kinds),
        misdeeds=misbehaviours(ground, kinds),
        seed=options.seed,
        kills_max=options.depth,
        seconds=options.soak_s or 0.0,
        most=options.max_points,
        ahead=2 * options.jobs,
    )


class Soaking:
    """One soak while it runs.

    Args:
        store: where its trials go; it has a survey.
        settings: of its runs.
        submit: hands a job to the workers.
        clock: tells the seconds.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        submit: Callable[[Job], Future[bytes]],
        clock: Clock = time.monotonic,
    ) -> None:
        self._store = store
        self._expectation = self._expected()
        trace = settings.trace and judged_by_calls(self._expectation)
        self._settings = msgspec.structs.replace(settings, trace=trace, lines=False)
        self._submit = submit
        self._clock = clock
        self._began = clock()
        self._pace = Pace(clock)
        self._before_s = float(store.get(SOAKED_S) or 0)
        self._worst = {trial.schedule: trial.judgement.verdict for trial in store.trials()}
        self._failed = sum(row.verdict == "INVALID" for row in store.soaked())

    def _expected(self) -> Expectation:
        survey = self._store.survey()
        assert survey is not None
        return survey[2]

    @property
    def seconds(self) -> float:
        """For how long it has gone on, interruptions left out."""
        return self._before_s + self._clock() - self._began

    def trials(
        self, soak: Soak, stop: Callable[[], bool] = lambda: False
    ) -> Iterator[SoakStarted | StoredTrial]:
        """Run trials as long as there is time for them and for the repeats of those that failed.

        Args:
            soak: what is asked for.
            stop: whether no further trial may begin, whatever time is left.
        """
        self._store.put("real", "it is a soak")
        drawn_from = (*soak.faults, *soak.preludes, *soak.misdeeds)
        self._store.put(DRAWN_FROM, str(len(drawn_from)))
        known = {row.position for row in self._store.soaked()}
        yield SoakStarted(soak.seconds, self._before_s, len(known))
        run_s = self._run_s()
        drawn = schedules(
            soak.points,
            run_s,
            soak.seed,
            soak.kills_max,
            soak.faults,
            soak.preludes,
            soak.misdeeds,
        )
        numbered = islice(enumerate(drawn), soak.most)
        waiting = ((number, schedule) for number, schedule in numbered if number not in known)
        pace = self._pace = Pace(self._clock, 2 * run_s / soak.ahead)
        reserve = Reserve(pace, soak.seconds, REPEATED_MOST, REPEATS)
        for failed in self._to_repeat():
            reserve.failed(failed.schedule)
        jobs = ((trial, self._job_for(*trial)) for trial in waiting)

        def time_left() -> bool:
            taken_s = self.seconds + pace.under_way_s + reserve.seconds
            return taken_s < soak.seconds and not stop()

        for (number, schedule), result, cost_s in self._each(jobs, soak.ahead, pace, time_left):
            trial = self._book(number, schedule, result)
            if trial.judgement.roots:
                reserve.failed(trial.schedule, cost_s)
            yield trial

    def _each(
        self,
        waiting: Iterator[tuple[T, Job]],
        ahead: int,
        pace: Pace,
        time_left: Callable[[], bool],
    ) -> Iterator[tuple[T, Result, float]]:
        """Run jobs of one trial each, and those that are running in the end to their end.

        Args:
            waiting: what each job is for, and the job; taken only when it is begun.
            ahead: how many the workers have at a time.
            pace: measures them.
            time_left: whether another one may begin.

        Returns:
            What each was for, what came of it, and what it cost.
        """
        running: dict[Future[bytes], tuple[T, float]] = {}
        while True:
            while len(running) < ahead and time_left():
                one = next(waiting, None)
                if one is None:
                    break
                began = pace.begun()
                running[self._submit(one[1])] = one[0], began
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                what, began = running.pop(future)
                (result,) = _results(future)
                yield what, result, pace.ended(began)

    def _run_s(self) -> float:
        """How long an undisturbed run takes; the surveys were slowed down by being looked at."""
        known = self._store.get(RUN_S)
        if known is None:
            (result,) = _results(self._submit(self._job_of(NOTHING)))
            history = History.decode(result.history)
            known = f"{sum(body.seconds for _, body in history.attempts):.6f}"
            self._store.put(RUN_S, known)
        return float(known)

    def _job_of(self, *schedules: str, keep: tuple[str, ...] = ()) -> Trials:
        return Trials(
            settings=self._settings,
            expectation=str(self._store.expectation_file),
            schedules=schedules,
            keep=keep,
        )

    def _job_for(self, number: int, schedule: Schedule) -> Trials:
        keep = (str(self._store.artefacts(WAVE, number)),) if self._failed < KEPT_MOST else ()
        return self._job_of(str(schedule), keep=keep)

    def _book(self, number: int, drawn: Schedule, result: Result) -> StoredTrial:
        judgement, ran = result.judgement, drawn
        assert judgement is not None
        if result.landed < drawn.faults:
            history = History.decode(result.history)
            ran = part_that_landed(history, drawn)
            judgement = judge(history, self._expectation, ran)
        verdict = judgement.verdict
        trial = StoredTrial(str(ran), WAVE, number, judgement, landed=True, real=True)
        worst = self._worst.get(str(ran))
        is_worst = worst is None or _BADNESS[verdict] > _BADNESS[worst]
        soaked = Soaked(number, str(drawn), str(ran), verdict)
        history_to_keep = result.history if is_worst else None
        self._store.put_soaked(soaked, trial, history_to_keep, self.seconds)
        if is_worst:
            self._worst[str(ran)] = verdict
        self._failed += verdict == "INVALID"
        return trial

    def _to_repeat(self) -> list[StoredTrial]:
        """Failed trials that are to be run again, as far as that was not done."""
        known = self._store.repeats()
        failed = failed_trials(self._store, REPEATED_MOST)
        return [trial for trial in failed if trial.schedule not in known]

    def repeats(
        self, soak: Soak, stop: Callable[[], bool] = lambda: False
    ) -> Iterator[RepeatsStarted]:
        """Run failed schedules again as long as there is time, and store what they showed.

        Args:
            soak: what is asked for; the time of its trials is gone already.
            stop: whether no further repeat may begin, whatever time is left.
        """
        waiting = self._to_repeat()
        if not waiting or stop() or self.seconds >= soak.seconds:
            return
        yield RepeatsStarted(len(waiting), REPEATS)
        pace = Pace(self._clock, self._pace.mean_s)
        expectation = self._expected()
        answers: dict[str, list[bool]] = {}
        jobs = ((t, self._job_of(t.schedule)) for t in waiting for _ in range(REPEATS))

        def time_left() -> bool:
            taken_s = self.seconds + pace.under_way_s + pace.mean_s
            return taken_s <= soak.seconds and not stop()

        for trial, result, _ in self._each(jobs, soak.ahead, pace, time_left):
            said = answers.setdefault(trial.schedule, [])
            said.append(_shows_again(trial, result, expectation))
            if len(said) == REPEATS:
                self._store.put_repeats(trial.schedule, summed(said, first=True))
            self._store.put(SOAKED_S, f"{self.seconds:.3f}")
        for text, said in answers.items():
            if len(said) < REPEATS:
                self._store.put_repeats(text, summed(said, first=True))


def _shows_again(trial: StoredTrial, result: Result, expectation: Expectation) -> bool:
    """Whether a repeat of a failed trial shows one of its findings."""
    schedule, shows = parse_schedule(trial.schedule), like(*trial.judgement.roots)
    return shows(judge(History.decode(result.history), expectation, schedule)) is not None


def failed_trials(store: Store, most: int) -> list[StoredTrial]:
    """Trials with findings, at most so many: in turn from each kind, operation and diagnosis."""
    groups: dict[Likeness, list[StoredTrial]] = {}
    for trial in store.trials():
        if trial.judgement.roots:
            groups.setdefault(Likeness.of(trial.judgement.roots[0]), []).append(trial)
    turns = chain.from_iterable(zip_longest(*groups.values()))
    return list(islice((trial for trial in turns if trial is not None), most))


def unrepeated(store: Store) -> tuple[int, int]:
    """Of failed schedules that were to be repeated: how many were not as often, and their number.

    The time of the soak was over before.
    """
    failed, known = failed_trials(store, REPEATED_MOST), store.repeats()
    whole = [t for t in failed if t.schedule in known and known[t.schedule].times >= REPEATS]
    return len(failed) - len(whole), len(failed)


def verdicts(store: Store) -> list[tuple[Soaked, str]]:
    """Each trial of a soak with its verdict of now: stored trials may have been judged again."""
    stored = {trial.schedule: trial for trial in store.trials()}
    found = []
    for row in store.soaked():
        trial = stored.get(row.schedule)
        verdict = row.verdict
        if trial is not None and (trial.wave, trial.position) == (WAVE, row.position):
            verdict = trial.judgement.verdict
        elif trial is not None and trial.judgement.verdict == "VALID":
            verdict = "VALID"  # no trial of this schedule was worse
        found.append((row, verdict))
    return found


def soaked_trials(store: Store) -> list[StoredTrial]:
    """One entry for each trial of a soak in which a fault landed, in the order of their numbers.

    What is stored of trials with one schedule is the worst of them; the others differ from it here
    by their verdict alone.
    """
    stored = {trial.schedule: trial for trial in store.trials()}
    found = []
    for row, verdict in verdicts(store):
        trial = stored.get(row.schedule)
        if trial is not None and row.schedule != NOTHING:
            same = trial.judgement.verdict == verdict
            judgement = trial.judgement if same else Judgement(verdict, end=trial.judgement.end)
            found.append(msgspec.structs.replace(trial, position=row.position, judgement=judgement))
    return found


def _results(future: Future[bytes]) -> tuple[Result, ...]:
    return outcome(future.result(), RunsDone).results
