"""The bench: single trials of one target, one after the other, against surveys made for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import msgspec

from chaoskit.campaign.jobs import (
    Runs,
    RunsDone,
    Session,
    Settings,
    Survey,
    SurveyDone,
    checked,
    judged_by_calls,
    trial_timeout_s,
)
from chaoskit.campaign.mechanisms import traced
from chaoskit.campaign.starting import survey_of
from chaoskit.checkers.check import judge
from chaoskit.explore.names import renamed
from chaoskit.explore.plan import Mechanism
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Judgement
from chaoskit.model.history import History
from chaoskit.model.schedule import Schedule
from chaoskit.model.token import Target
from chaoskit.trial.loading import load


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What two undisturbed runs teach."""

    first: History
    second: History
    expectation: Expectation


@dataclass(frozen=True, slots=True)
class Tried:
    """One trial."""

    schedule: Schedule
    history: History
    judgement: Judgement

    @property
    def landed(self) -> bool:
        """Whether every fault of its schedule took place."""
        return len(self.history.landed) == self.schedule.faults


class Bench:
    """Use as a context manager. Inputs of another length have surveys of their own.

    The surveys tell of every point that the ``mechanisms`` need. After each kill all clocks advance
    by ``resume_after_s``.

    Attributes:
        trials: how many were run.
        surveys: how many; each of them is two runs.
    """

    def __init__(
        self,
        target: Target,
        seed: int,
        work_root: str = "",
        mechanisms: Sequence[Mechanism] = (),
        *,
        resume_after_s: int = 0,
    ) -> None:
        self._target = target
        self._session = Session()
        self._settings = Settings(
            target=target,
            seed=seed,
            work_root=work_root,
            another_day=traced().works,
            resume_after_s=resume_after_s,
        )
        self._mechanisms = tuple(mechanisms)
        self._surveyed: dict[int | None, Surveyed] = {}
        self.trials = 0
        self.surveys = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._session.close()

    def survey(self, take: int | None = None) -> Surveyed:
        """What undisturbed runs with the first ``take`` items of the inputs teach.

        Raises:
            ScenarioError: the task cannot be started.
        """
        if take not in self._surveyed:
            settings = self._telling(msgspec.structs.replace(self._settings, take=take))
            # Where calls are seen, causes are told by them, whatever the points are.
            trace = settings.trace or traced().works
            job = Survey(msgspec.structs.replace(settings, trace=trace))
            surveyed = checked(self._session.perform(job), SurveyDone)
            runs = [History.decode(result.history) for result in surveyed.results]
            norm = [History.decode(result.history) for result in surveyed.norm]
            expectation = survey_of(runs, load(self._target, take), norm, again=True)
            first, second = (renamed(run, expectation.varying) for run in runs)
            self._surveyed[take] = Surveyed(first, second, expectation)
            self.surveys += 1
        return self._surveyed[take]

    def trial(self, schedule: Schedule, take: int | None = None, *, tell: bool = False) -> Tried:
        """Run ``schedule`` once by real kills.

        Args:
            schedule: the faults.
            take: how many leading items of the inputs; None: all of them.
            tell: the history tells of as many points as the surveys do, which takes its time.
        """
        expectation = self.survey(take).expectation
        scenario = load(self._target, take).scenario
        settings = msgspec.structs.replace(
            self._settings,
            timeout_s=scenario.timeout_s or trial_timeout_s(expectation),
            take=take,
            varying=expectation.varying,
        )
        if tell:
            settings = self._telling(settings)
        if judged_by_calls(expectation):
            settings = msgspec.structs.replace(settings, trace=True)
        job = Runs(settings, (str(schedule),))
        (result,) = checked(self._session.perform(job), RunsDone).results
        self.trials += 1
        history = History.decode(result.history)
        return Tried(schedule, history, judge(history, expectation, schedule))

    def _telling(self, settings: Settings) -> Settings:
        trace, lines = "calls" in self._mechanisms, "lines" in self._mechanisms
        return msgspec.structs.replace(settings, trace=trace, lines=lines)
