"""How a worker runs the trials of a job: each by a real kill, or from snapshots of one run.

A snapshot is the durable world at a point: the work folder and the services' worlds, copied while
the task stands still there. What a SIGKILL leaves behind is just that, so going on from the copy is
the trial without the part before the kill. Points with equal worlds share one resume. Two guards
keep it honest: every failure (the same findings by the same kind of fault) is shown once more by a
real kill, whose result is the one that counts; and so is a sample of what was found right.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial

import msgspec

from chaoskit.campaign.bounding import BOUNDED, FULL, Bounding, Plan, Run
from chaoskit.campaign.repeating import REPEATS, like, summed
from chaoskit.checkers.check import judge
from chaoskit.explore.landed import found_nothing
from chaoskit.model.events import Event, FaultLanded, renumbered
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Judgement
from chaoskit.model.history import History
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.trial.horizon import Horizon
from chaoskit.trial.snapshots import Album, Snapshot, scene
from chaoskit.trial.supervisor import Resumed, Supervisor


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One trial.

    ``real`` says that a process was killed for it, not only looked at. ``world`` names the durable
    state from which the last resume began, where a copy was taken of it; ``shared`` says that this
    resume was run for another point with the same state.
    """

    history: bytes
    judgement: Judgement | None = None
    landed: int = 0
    real: bool = True
    world: str = ""
    shared: bool = False


DOUBT = "a copy of the world"
"""How the reason begins where a snapshot and a real kill disagree."""

SAMPLE_EVERY = 64
"""Of the trials that a copy calls VALID one in so many is run by a real kill as well."""

Keep = Callable[[Schedule, History], None]
"""Called after a real trial that has findings, while its work folder is still there."""

TRIES = 3
"""How often a kill that does not land is tried, before that is what the trial says."""


def told(history: History) -> Result:
    """A run that is not judged (a survey's)."""
    return _result(history, None, real=True)


async def real_trial(
    supervisor: Supervisor,
    schedule: Schedule,
    expectation: Expectation,
    keep: Keep,
    bounding: Bounding | None = None,
) -> Result:
    """Run ``schedule`` by real kills, its last resume as far as ``bounding`` says, and judge it."""
    for left in reversed(range(TRIES)):
        run = partial(supervisor.run, schedule)
        history, judgement = await _judged(schedule, run, expectation, bounding)
        whole = len(history.landed) == schedule.faults or found_nothing(history, schedule)
        if whole or schedule.timed or not left:
            break  # where threads race, a point may be passed in one run and not in the next
    if judgement.findings:
        keep(schedule, history)
    return _result(history, judgement, real=True)


async def _judged(
    schedule: Schedule, run: Run, expectation: Expectation, bounding: Bounding | None
) -> tuple[History, Judgement]:
    """Run a trial and judge it."""
    if bounding is not None:
        return await bounding.follow(schedule, run)
    history = await run(None)
    return history, judge(history, expectation, schedule)


def plan_of(schedules: Sequence[Schedule]) -> Plan:
    """The beginnings of ``schedules``, and their last faults; and the way to each beginning."""
    found: dict[Schedule, dict[Fault, None]] = {}
    for schedule in schedules:
        if not schedule.attempts or not schedule.copied:
            continue
        while schedule.attempts and len(schedule.attempts[-1]) == 1:
            before = _beginning(schedule)
            found.setdefault(before, {})[_last(schedule)] = None
            schedule = before  # noqa: PLW2901 - up the way, which is short
    return {before: tuple(faults) for before, faults in found.items()}


@dataclass(frozen=True, slots=True)
class _Twin:
    """A resume that was run: from where in its history on it is the same for an equal world.

    ``history`` is packed: there may be tens of thousands of them; ``bounded`` says that a part of
    it was taken from the undisturbed run.
    """

    events: int
    at_us: int
    number: int
    history: bytes
    bounded: bool

    @classmethod
    def of(cls, snapshot: Snapshot, history: History) -> _Twin:
        """The resume that began at ``snapshot``."""
        at_us = snapshot.events[-1].at_us if snapshot.events else 0
        packed = zlib.compress(history.encode(), 1)
        number = next(copy(snapshot.numbers))
        return cls(len(snapshot.events), at_us, number, packed, history.bounded)

    def unpacked(self) -> History:
        """Its history."""
        return History.decode(zlib.decompress(self.history))


class Darkroom:
    """The snapshots of one supervisor for one plan, and what was learnt from each state."""

    def __init__(
        self, supervisor: Supervisor, plan: Plan, expectation: Expectation, resumes: str = FULL
    ) -> None:
        """With ``resumes`` bounded they are followed as `chaoskit.campaign.bounding` says."""
        self._supervisor = supervisor
        self._plan = plan
        self._expectation = expectation
        self._albums: dict[Schedule, Album] = {}
        self._twins: dict[tuple[bytes, int], _Twin] = {}
        self._confirmed: set[tuple[str, frozenset[str]]] = set()
        self._bounding: Bounding | None = None
        if resumes == BOUNDED:
            self._bounding = Bounding(
                supervisor.world.reader, supervisor.end_state, plan, expectation
            )
        self._learnt = False

    @property
    def otherwise(self) -> Schedule | None:
        """See `Bounding.otherwise`."""
        return self._bounding.otherwise if self._bounding is not None else None

    async def trial(self, schedule: Schedule, keep: Keep, number: int) -> Result:
        """Run ``schedule`` from a snapshot if that can be done, by real kills otherwise.

        Args:
            schedule: the faults.
            keep: see `Keep`.
            number: of the trial in the plan; some numbers are also run by real kills.
        """
        supervisor, expectation, bounding = self._supervisor, self._expectation, self._bounding
        if bounding is not None and not self._learnt:
            self._learnt = True
            await self._learn_first(bounding)
        snapshot = await self._snapshot(schedule)
        if snapshot is None:
            return await real_trial(supervisor, schedule, expectation, keep)
        (fault,) = schedule.attempts[-1]
        key = (snapshot.world, len(schedule.attempts))
        twin = self._twin(key, schedule)
        if twin is not None:
            history = _retold(snapshot, schedule, twin)
            judgement = judge(history, expectation, schedule)
        else:
            run = partial(supervisor.resume, snapshot, schedule)
            history, judgement = await _judged(schedule, run, expectation, bounding)
        result = msgspec.structs.replace(
            _result(history, judgement, real=False),
            world=snapshot.world.hex(),
            shared=twin is not None,
        )
        if twin is None and not fault.is_late:
            self._twins[key] = _Twin.of(snapshot, history)
        failure = (fault.action, frozenset(f.fingerprint for f in judgement.roots))
        unseen = judgement.verdict != "VALID" and failure not in self._confirmed
        if unseen or number % SAMPLE_EVERY == 0:
            truth = await real_trial(supervisor, schedule, expectation, keep, bounding)
            if _agree(judgement, truth):
                self._confirmed.add(failure)
                return msgspec.structs.replace(truth, world=result.world, shared=result.shared)
            again = [
                await real_trial(supervisor, schedule, expectation, keep, bounding)
                for _ in range(REPEATS)
            ]
            return doubted(schedule, judgement, truth, again)
        return result

    def _twin(self, key: tuple[bytes, int], schedule: Schedule) -> _Twin | None:
        """A resume from an equal world; none that was bounded where it is to be followed."""
        twin = self._twins.get(key)
        if schedule.attempts[-1][0].is_late or twin is None:
            return None
        wanted = twin.bounded and self._bounding is not None and self._bounding.follows(schedule)
        return None if wanted else twin

    async def record(self) -> dict[str, str]:
        """Look at the first attempt.

        Returns:
            The world after each last fault, by the text of the schedule. What is equal here is so
            in another worker's copies, whose bytes may differ: paths, ports and salts are its own.
        """
        album = await self._album(Schedule())
        faults = (fault for fault in self._plan.get(Schedule(), ()) if not fault.is_late)
        known = ((fault, album.get(scene(fault))) for fault in faults)
        return {str(Schedule(((f,),))): s.world.hex() for f, s in known if s is not None}

    async def _learn_first(self, bounding: Bounding) -> None:
        """What a resume leaves different though nothing is wrong, by some that run to their end."""
        album = await self._album(Schedule())
        faults = [fault for fault in album if not fault.is_power]
        for at in (0.0, 0.34, 0.67):
            if not faults:
                return
            fault = faults[int(at * len(faults))]
            schedule = Schedule(((fault,),))
            run = partial(self._supervisor.resume, album[fault], schedule)
            await bounding.follow(schedule, run, whole=True)

    async def _snapshot(self, schedule: Schedule) -> Snapshot | None:
        """The world at the last fault; None where a real kill is needed."""
        if schedule.timed or not schedule.attempts or not schedule.copied:
            return None
        before, last = _beginning(schedule), _last(schedule)
        album = await self._album(before)
        return album.get(scene(last))

    async def _album(self, before: Schedule) -> Album:
        found = self._albums.get(before)
        if found is not None:
            return found
        since = None
        if before.attempts:
            snapshot = await self._snapshot(before)
            if snapshot is None:
                return {}
            since = Resumed(snapshot, before)
            self._forget(len(before.attempts))
        faults = self._plan.get(before, ())
        learn, horizon = None, None
        if self._bounding is not None:
            learn = self._bounding.undisturbed if since is None else None
            if since is not None:
                horizon = Horizon(self._bounding.undisturbed, lambda _: False, how="gently")
        album = self._albums[before] = await self._supervisor.record(faults, since, learn, horizon)
        return album

    def _forget(self, depth: int) -> None:
        """Only the way to the next album is kept: copies take room."""
        for old in [s for s in self._albums if len(s.attempts) >= depth]:
            del self._albums[old]
        kept = [s for album in self._albums.values() for s in album.values()]
        undisturbed = self._bounding.undisturbed.trees if self._bounding is not None else ()
        self._supervisor.world.keep_only(kept, undisturbed)


def _agree(judgement: Judgement, truth: Result) -> bool:
    return truth.judgement is not None and _kinds(truth.judgement) == _kinds(judgement)


def doubted(
    schedule: Schedule, judgement: Judgement, truth: Result, again: Sequence[Result]
) -> Result:
    """What counts where a copy and a real kill disagree: the real kills, repeated.

    Args:
        schedule: of all of them.
        judgement: what the resume from the copy showed.
        truth: what the real kill showed.
        again: what further ones showed.

    Returns:
        A trial with findings if any of the real ones has some; how many of them, as a doubt.
    """
    judged = [t.judgement for t in (truth, *again) if t.judgement is not None]
    findings = [finding for one in (judgement, *judged) for finding in one.roots]
    shows = like(*findings)
    repeats = summed((shows(j) is not None for j in judged[1:]), first=bool(judged[0].findings))
    seen, real = _kinds(judgement), _kinds(judged[0])
    doubt = (
        f"{DOUBT} at {schedule} showed {seen or 'nothing'}, a real kill {real or 'nothing'}; "
        f"of {repeats.times} more real kills {repeats.shown} showed a finding"
        + ("" if repeats.steady else f": {repeats}")
    )
    best = next((t for t in (truth, *again) if t.judgement and t.judgement.findings), truth)
    assert best.judgement is not None
    changed = msgspec.structs.replace(
        best.judgement,
        verdict="INVALID" if best.judgement.findings else "UNKNOWN",
        unknowns=(*best.judgement.unknowns, doubt),
    )
    return msgspec.structs.replace(best, judgement=changed)


def _kinds(judgement: Judgement) -> str:
    return ", ".join(sorted({finding.kind for finding in judgement.roots}))


def _retold(snapshot: Snapshot, schedule: Schedule, twin: _Twin) -> History:
    """The history of a trial whose resume was already run from an equal world.

    The events up to the kill are this trial's own; those after it are its twin's, renumbered.
    """
    shift = next(copy(snapshot.numbers)) - twin.number
    events = list(snapshot.events)
    (fault,) = schedule.attempts[-1]
    late_us = (events[-1].at_us if events else 0) - twin.at_us
    for event in twin.unpacked().events[twin.events :]:
        body = event.body
        if isinstance(body, FaultLanded) and body.attempt == snapshot.attempt:
            body = FaultLanded(snapshot.attempt, str(fault))
        events.append(Event(len(events), event.at_us + late_us, renumbered(body, shift)))
    return History(tuple(events))


def _beginning(schedule: Schedule) -> Schedule:
    return Schedule(schedule.attempts[:-1])


def _last(schedule: Schedule) -> Fault:
    return schedule.attempts[-1][0]


def _result(history: History, judgement: Judgement | None, *, real: bool) -> Result:
    return Result(
        history=history.encode(), judgement=judgement, landed=len(history.landed), real=real
    )
