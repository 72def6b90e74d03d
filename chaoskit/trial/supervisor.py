"""The supervisor: one scenario, ready to be run again and again, by real kills or from snapshots.

It lives as long as its worker. What belongs to a trial is in `chaoskit.trial.state`, what belongs
to an attempt in `chaoskit.trial.attempt`.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Self

from chaoskit.model.actions import Late, PowerLoss
from chaoskit.model.effects import Effect
from chaoskit.model.events import AttemptEnded, FaultLanded
from chaoskit.model.history import History
from chaoskit.model.hosting import RequestInfo
from chaoskit.model.points import Point
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.probe.where import Location
from chaoskit.trial.conduct import Conduct
from chaoskit.trial.loading import Loaded
from chaoskit.trial.recording import Locating, Recording
from chaoskit.trial.reports import Message
from chaoskit.trial.snapshots import Album, Snapshot
from chaoskit.trial.stage import Stage
from chaoskit.trial.state import TrialState
from chaoskit.trial.trial import Trial
from chaoskit.trial.watch import Looker
from chaoskit.trial.world import World

HOLD_S = 0.01
"""How late a service answers in the second baseline run."""

ANOTHER_DAY_S = 33 * 86400 + 3600 + 60 + 1
"""By how much the clocks of the second baseline run are ahead: another month, day of the week,
hour, minute and second.
"""


class Resumed(NamedTuple):
    """An attempt that begins at ``snapshot``, where the last fault of ``schedule`` landed."""

    snapshot: Snapshot
    schedule: Schedule


class Supervisor:
    """One scenario's trials. Use as an asynchronous context manager.

    Attributes:
        conduct: how attempts are run from now on.
    """

    def __init__(self, loaded: Loaded, seed: int, work_root: Path | None = None) -> None:
        self._stage = Stage(loaded, seed, work_root)
        own_s = loaded.scenario.timeout_s
        self.conduct = Conduct() if own_s is None else Conduct(timeout_s=own_s)
        self._ears = _Ears()

    async def __aenter__(self) -> Self:
        await self._stage.set_up(self._ears, self._ears.heard, self._ears.traced)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stage.tear_down()

    @property
    def own_timeout_s(self) -> float | None:
        """The limit of an attempt that the scenario itself sets."""
        return self._stage.scenario.timeout_s

    async def run(self, schedule: Schedule) -> History:
        """Run ``schedule`` to its end by real kills.

        Raises:
            UsageError: something that ``schedule`` names cannot be done here.
        """
        self._stage.circumstances.check(schedule)
        self._stage.scenario.check_resumes(schedule, self.conduct.resume_after_s)
        return await self._run(1, schedule, await self._afresh(schedule))

    async def survey(self) -> tuple[History, History]:
        """Two undisturbed runs; the second one in a world that is as different as it may be.

        Its services make other ids and its clocks show another day, so that a field that only
        repeats one of them is seen to vary; and they answer a little late, so that requests that
        are sent together are seen to overlap. A task that does something else on another day is
        run a second time on the same one.
        """
        return await self._pair()

    async def norm(self) -> tuple[History, ...]:
        """Two runs that say what is expected, where those of `survey` do not: of the control, if
        the scenario has one, and without its services' behaviours.
        """
        return await self._pair(norm=True) if self._stage.has_norm else ()

    async def _pair(self, *, norm: bool = False) -> tuple[History, History]:
        first = await self._run(1, Schedule(), await self._afresh(Schedule(), norm=norm))
        if self.conduct.another_day:
            second = await self._differently(ANOTHER_DAY_S, norm=norm)
            if _alike(first, second):
                return first, second
        return first, await self._differently(0, norm=norm)

    async def _differently(self, later_s: int, *, norm: bool) -> History:
        state = await self._afresh(Schedule(), seed_shift=1, norm=norm, ahead_s=later_s)
        self._stage.delay_replies(HOLD_S)
        try:
            return await self._run(1, Schedule(), state)
        finally:
            self._stage.delay_replies(0.0)

    async def _afresh(
        self, schedule: Schedule, seed_shift: int = 0, *, norm: bool = False, ahead_s: int = 0
    ) -> TrialState:
        """The state of a trial in a world in which nothing has happened."""
        await self._reset(seed_shift, norm=norm, ahead_s=ahead_s)
        return TrialState(self._stage, self.conduct, loses_power=schedule.loses_power)

    async def _reset(self, seed_shift: int = 0, *, norm: bool = False, ahead_s: int = 0) -> None:
        """The world as every trial finds it; see `Stage.reset`."""
        self._ears.trial = None  # what prepares it is not the task
        await self._stage.reset(seed_shift, norm=norm, ahead_s=ahead_s)

    async def _run(
        self, attempt: int, schedule: Schedule, state: TrialState, looker: Looker | None = None
    ) -> History:
        self._ears.trial = trial = Trial(state)
        return await trial.run(attempt, schedule, looker)

    # Snapshots: one attempt is looked at in many points, and only the resumes are run.

    @property
    def can_snapshot(self) -> bool:
        """Whether every service can go back to a saved world."""
        return self._stage.can_go_back

    @property
    def no_view(self) -> str:
        """Why the task does not run in a view of the file system; empty where it does."""
        return self._stage.no_view

    @property
    def closed(self) -> tuple[str, ...]:
        """Mounts that the task can only read in its view."""
        return tuple(self._stage.view.closed) if self._stage.view is not None else ()

    @property
    def world(self) -> World:
        """What is copied, and where the copies are."""
        return self._stage.world

    async def record(self, faults: Iterable[Fault], since: Resumed | None = None) -> Album:
        """Run one attempt without a fault, and copy the world that each of ``faults`` would leave.

        Args:
            faults: what would be done, and where.
            since: an attempt that begins after a kill; None for the first one of all.

        Returns:
            The worlds at the points that the attempt passed, as far as there is room.
        """
        wanted = tuple(faults)
        schedule = Schedule() if since is None else since.schedule
        loses_power = any(isinstance(fault.action, PowerLoss) for fault in wanted)
        if since is None:
            await self._reset()
            state = TrialState(self._stage, self.conduct, loses_power=loses_power)
        else:
            state = await self._go_back(since.snapshot, schedule, loses_power=loses_power)
        recording = Recording(state, self.world, wanted)
        await self._run(len(schedule.attempts) + 1, schedule, state, recording)
        return recording.album

    async def resume(self, snapshot: Snapshot, schedule: Schedule) -> History:
        """Go on from ``snapshot`` as if the last fault of ``schedule`` had landed there."""
        state = await self._go_back(snapshot, schedule)
        return await self._run(snapshot.attempt + 1, schedule, state)

    async def _go_back(
        self, snapshot: Snapshot, schedule: Schedule, *, loses_power: bool = False
    ) -> TrialState:
        """The state of a trial in the world of ``snapshot``, after the kill there."""
        self._stage.forget_preludes()
        await self.world.put_back(snapshot)
        state = TrialState(
            self._stage,
            self.conduct,
            loses_power=loses_power,
            before=snapshot.log,
            number=snapshot.number,
        )
        # The services have it from the snapshot.
        kills = state.recorder.history().kills
        self._stage.circumstances.shift_s = self.conduct.resume_after_s * kills
        attempt = snapshot.attempt
        for fault in schedule.faults_of(attempt):
            state.recorder.add(FaultLanded(attempt, str(fault)))
            if isinstance(fault.action, Late) and snapshot.late is not None:
                state.in_flight.add(snapshot.late, fault.action.after)
        state.collect(attempt)
        killed = AttemptEnded(attempt=attempt, how="killed", code=int(signal.SIGKILL), seconds=0.0)
        state.recorder.add(killed)
        state.find_records(attempt)
        return state

    async def locate(self, points: Iterable[Point]) -> dict[Point, tuple[Location, ...]]:
        """Run undisturbed once more, and see which line of a Python task's own is at each point.

        Returns:
            The places that were passed and where such a line was running, each with the lines that
            called it, the innermost one first; none for other tasks.
        """
        await self._reset()
        state = TrialState(self._stage, replace(self.conduct, locating=True))
        locating = Locating(state, points)
        await self._run(1, Schedule(), state, locating)
        return locating.found

    def copy_state(self, folder: Path, bytes_max: int) -> bool:
        """Keep the last trial's work folder in ``folder``. False: larger than ``bytes_max``."""
        return self._stage.workspace.copy_state(folder, bytes_max)


class _Ears:
    """Hands what is heard to the trial that is running, or ran last. Where there is none the world
    is prepared: requests are carried out, and nobody books them.
    """

    def __init__(self) -> None:
        self.trial: Trial | None = None
        self._numbers = count(1)

    def heard(self, message: Message) -> bool:
        return self.trial is not None and self.trial.heard(message)

    def traced(self, message: Mapping[str, Any]) -> None:
        if self.trial is not None:
            self.trial.traced(message)

    def received(self, request: RequestInfo) -> int | None:
        return next(self._numbers) if self.trial is None else self.trial.received(request)

    def applied(self, number: int, effects: Sequence[Effect]) -> bool:
        return self.trial is None or self.trial.applied(number, effects)

    def answering(self, number: int) -> None:
        if self.trial is not None:
            self.trial.answering(number)

    def answered(self, number: int, status: int, *, deduped: bool, delivered: bool) -> None:
        if self.trial is not None:
            self.trial.answered(number, status, deduped=deduped, delivered=delivered)

    def landed(self, number: int, effects: Sequence[Effect]) -> None:
        if self.trial is not None:
            self.trial.landed(number, effects)


def _alike(first: History, second: History) -> bool:
    """Whether two undisturbed runs ended alike, with as many effects of each kind and as many files
    of each name.
    """
    ends = [[(ended.how, ended.code) for _, ended in run.attempts] for run in (first, second)]
    deeds = [Counter(b.effect.operation for _, b in run.effects) for run in (first, second)]
    files = [run.digests.keys() for run in (first, second)]
    return ends[0] == ends[1] and deeds[0] == deeds[1] and files[0] == files[1]
