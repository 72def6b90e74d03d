"""Bounding: which resumes of a plan are followed only to their horizon, and whether that is right.

What a process holds in memory is not seen. A resume whose world is the undisturbed run's may still
go on otherwise: a budget that is counted in memory, a list of what is to be undone. So some are
followed past their horizon: of each kind of point the first and the last, and the first, second,
fourth, eighth … for which a horizon was found. If one of them then does anything that the
undisturbed run did not do, bounding is given up, and the campaign begins again with full resumes.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

from chaoskit.checkers.check import judge
from chaoskit.checkers.effects import breaks_the_contract
from chaoskit.model.events import ResumeBounded
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Judgement
from chaoskit.model.history import History
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.trial.horizon import Horizon, Undisturbed, as_if_bounded, goes_on_alike
from chaoskit.trial.logical import Reader
from chaoskit.trial.snapshots import Tree

OTHERWISE = "otherwise"
"""The name in a campaign's store of the schedule that made it give bounding up."""

FULL, BOUNDED = "full", "bounded"
"""How far resumes are followed: to their end, or as `chaoskit.trial.horizon` says."""

Plan = Mapping[Schedule, Sequence[Fault]]
"""For each beginning that schedules share, their last faults."""

Run = Callable[[Horizon | None], Awaitable[History]]
"""Runs a trial whose last resume is followed as far as the horizon says; None: to its end."""


class Bounding:
    """The horizons of one plan's resumes, and what following some of them to their end has shown.

    Attributes:
        undisturbed: what resumes are compared with.
        otherwise: the first schedule whose resume, when followed past its horizon, went on in
            another way than was taken for granted; None: there is none so far.
    """

    def __init__(
        self, reader: Reader, end: Callable[[], Tree], plan: Plan, expectation: Expectation
    ) -> None:
        """``end`` gives the files as the last trial left them."""
        self.undisturbed = Undisturbed(reader, expectation.identify)
        self.otherwise: Schedule | None = None
        self._end = end
        self._expectation = expectation
        self._ends = set(ends_of_kinds(plan))
        self._found: dict[str, set[Schedule]] = {}

    async def follow(
        self, schedule: Schedule, run: Run, *, whole: bool = False
    ) -> tuple[History, Judgement]:
        """Run a trial, learn from it, and judge it.

        Args:
            schedule: of the trial.
            run: see `Run`.
            whole: it is followed to its end in any case.
        """
        horizon = self._horizon(schedule, whole=whole)
        history = await run(horizon)
        judgement = judge(history, self._expectation, schedule)
        # first what may vary, and then whether anything else does
        if not history.bounded and judgement.verdict == "VALID" and history.completed:
            self.undisturbed.learn(self._end(), history.events)
        if horizon is not None and horizon.cut is not None:
            self._found.setdefault(kind_of(schedule), set()).add(schedule)
            if not self.otherwise and not self._is_right(schedule, horizon.cut, history, judgement):
                self.otherwise = schedule
        return history, judgement

    def follows(self, schedule: Schedule) -> bool:
        """Whether the last resume of ``schedule`` is followed past its horizon, if it has one."""
        found = self._found.get(kind_of(schedule), set())
        number = len(found) + (schedule not in found)
        return schedule in self._ends or _is_power_of_two(number)

    def _horizon(self, schedule: Schedule, *, whole: bool) -> Horizon | None:
        if self.undisturbed.end is None or self.otherwise or schedule.attempts[-1][0].is_late:
            return None
        return Horizon(
            self.undisturbed,
            lambda effects: breaks_the_contract(effects, self._expectation),
            how="noted" if whole or self.follows(schedule) else "at once",
        )

    def _is_right(
        self, schedule: Schedule, cut: int, history: History, judgement: Judgement
    ) -> bool:
        """Whether a resume that was followed past its horizon did what was taken for granted."""
        notes = [index for index, body in history.of(ResumeBounded) if body.followed]
        if not notes:
            return True  # it was not followed: nothing to compare
        said = as_if_bounded(self.undisturbed, cut, history.events, notes[-1])
        return goes_on_alike(self.undisturbed, said, history, notes[-1]) and (
            _what(judge(said, self._expectation, schedule)) == _what(judgement)
        )


def kind_of(schedule: Schedule) -> str:
    """What a schedule has in common with those whose last faults are the same but for numbers."""
    return f"{len(schedule.attempts)} {re.sub(r'[0-9]+', '', str(schedule.attempts[-1][0]))}"


def ends_of_kinds(plan: Plan) -> Iterator[Schedule]:
    """The first and the last schedule of each kind."""
    first: dict[str, Schedule] = {}
    last: dict[str, Schedule] = {}
    for before, faults in plan.items():
        for fault in faults:
            schedule = before.then(fault)
            kind = kind_of(schedule)
            first.setdefault(kind, schedule)
            last[kind] = schedule
    yield from first.values()
    yield from last.values()


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


def _what(judgement: Judgement) -> object:
    return judgement.verdict, judgement.end, {f.fingerprint for f in judgement.findings}
