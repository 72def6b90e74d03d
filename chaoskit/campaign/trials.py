"""How a worker runs the trials of a job: each by a real kill, or from snapshots of one run.

A snapshot is the durable world at a point: the files and the services' worlds, copied while the
task stands still there. Going on from the copy is the trial without the part before the kill.
Points with equal worlds share one resume.

Two guards keep it honest. Every failure (the same findings by the same kind of fault) is shown once
more by a real kill, whose result is the one that counts. Of every class of points one trial that
was found right is run by a real kill as well (`chaoskit.explore.classes`). Where a copy disagrees
with real kills that agree among themselves, the snapshots are refuted: the campaign begins again by
real kills.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from chaoskit.campaign.repeating import REPEATS, like, summed
from chaoskit.checkers.check import judge
from chaoskit.explore.landed import found_nothing
from chaoskit.model.actions import Late
from chaoskit.model.events import Event, FaultLanded, renumbered
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Judgement
from chaoskit.model.history import History
from chaoskit.model.schedule import Action, Fault, Schedule
from chaoskit.trial.snapshots import Album, Snapshot, scene
from chaoskit.trial.supervisor import Resumed, Supervisor

Plan = Mapping[Schedule, Sequence[Fault]]
"""For each beginning that schedules share, their last faults."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One trial.

    ``real`` says that a process was killed for it, not only looked at. ``world`` names the durable
    state from which the last resume began, where a copy was taken of it; ``shared`` says that this
    resume was run for another point with the same state. ``refuted``, where it is not empty, says
    how a copy of the world was proved wrong by real kills.
    """

    history: bytes
    judgement: Judgement | None = None
    landed: int = 0
    real: bool = True
    world: str = ""
    shared: bool = False
    refuted: str = ""


DOUBT = "a copy of the world"
"""How the reason begins where a snapshot and a real kill disagree."""

Keep = Callable[[Schedule, History], None]
"""Called after a real trial that has findings, while its work folder is still there."""

TRIES = 3
"""How often a kill that does not land is tried, before that is what the trial says."""


def told(history: History) -> Result:
    """A run that is not judged (a survey's)."""
    return _result(history, None, real=True)


async def real_trial(
    supervisor: Supervisor, schedule: Schedule, expectation: Expectation, keep: Keep
) -> Result:
    """Run ``schedule`` by real kills, and judge it."""
    for left in reversed(range(TRIES)):
        history = await supervisor.run(schedule)
        whole = len(history.landed) == schedule.faults or bool(found_nothing(history, schedule))
        if whole or schedule.timed or not left:
            break  # where threads race, a point may be passed in one run and not in the next
    judgement = judge(history, expectation, schedule)
    if judgement.findings:
        keep(schedule, history)
    return _result(history, judgement, real=True)


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

    ``history`` is packed: there may be tens of thousands of them.
    """

    events: int
    at_us: int
    number: int
    history: bytes

    @classmethod
    def of(cls, snapshot: Snapshot, history: History) -> _Twin:
        """The resume that began at ``snapshot``."""
        packed = zlib.compress(history.encode(), 1)
        return cls(snapshot.log.length, snapshot.log.at_us, snapshot.number, packed)

    def unpacked(self) -> History:
        """Its history."""
        return History.decode(zlib.decompress(self.history))


class Darkroom:
    """The snapshots of one supervisor for one plan, and what was learnt from each state."""

    def __init__(
        self,
        supervisor: Supervisor,
        schedules: Sequence[Schedule],
        expectation: Expectation,
    ) -> None:
        """``schedules`` are all of a wave."""
        self._supervisor = supervisor
        self._plan = plan_of(schedules)
        self._expectation = expectation
        self._albums: dict[Schedule, Album] = {}
        self._twins: dict[tuple[bytes, int], _Twin] = {}
        self._confirmed: set[tuple[Action, frozenset[str]]] = set()

    async def trial(self, schedule: Schedule, keep: Keep, *, check: bool = False) -> Result:
        """Run ``schedule`` from a snapshot if that can be done, by real kills otherwise.

        Args:
            schedule: the faults.
            keep: see `Keep`.
            check: run it by a real kill too, if it is found right. The first one of each failure
                always is.
        """
        supervisor, expectation = self._supervisor, self._expectation
        snapshot = await self._snapshot(schedule)
        if snapshot is None:
            return await real_trial(supervisor, schedule, expectation, keep)
        key = (snapshot.world, len(schedule.attempts))
        late = isinstance(schedule.attempts[-1][0].action, Late)
        twin = None if late else self._twins.get(key)
        if twin is not None:
            history = _retold(snapshot, schedule, twin)
        else:
            history = await supervisor.resume(snapshot, schedule)
            if not late:
                self._twins[key] = _Twin.of(snapshot, history)
        judgement = judge(history, expectation, schedule)
        result = msgspec.structs.replace(
            _result(history, judgement, real=False),
            world=snapshot.world.hex(),
            shared=twin is not None,
        )
        right = judgement.verdict == "VALID"
        if check if right else _failure(schedule, judgement) not in self._confirmed:
            return await self._checked(schedule, judgement, result, keep)
        return result

    async def _checked(
        self, schedule: Schedule, judgement: Judgement, result: Result, keep: Keep
    ) -> Result:
        """What a real kill says of a trial; where it disagrees with the copy, what several say."""
        supervisor, expectation = self._supervisor, self._expectation
        truth = await real_trial(supervisor, schedule, expectation, keep)
        if _agree(judgement, truth):
            self._confirmed.add(_failure(schedule, judgement))
            return msgspec.structs.replace(truth, world=result.world, shared=result.shared)
        again = [await real_trial(supervisor, schedule, expectation, keep) for _ in range(REPEATS)]
        if truth.judgement is not None and all(_agree(truth.judgement, one) for one in again):
            seen, real = _kinds(judgement), _kinds(truth.judgement)
            why = (
                f"{DOUBT} at {schedule} showed {seen or 'nothing'}, and {REPEATS + 1} real kills "
                f"there showed {real or 'nothing'}"
            )
            return msgspec.structs.replace(truth, refuted=why)
        return doubted(schedule, judgement, truth, again)

    async def record(self) -> dict[str, str]:
        """Look at the first attempt.

        Returns:
            The world after each last fault, by the text of the schedule. What is equal here is so
            in another worker's copies, whose bytes may differ: paths, ports and salts are its own.
        """
        album = await self._album(Schedule())
        faults = (
            fault for fault in self._plan.get(Schedule(), ()) if not isinstance(fault.action, Late)
        )
        known = ((fault, album.get(scene(fault))) for fault in faults)
        return {str(Schedule(((f,),))): s.world.hex() for f, s in known if s is not None}

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
        album = self._albums[before] = await self._supervisor.record(faults, since)
        return album

    def _forget(self, depth: int) -> None:
        """Only the way to the next album is kept: copies take room."""
        for old in [s for s in self._albums if len(s.attempts) >= depth]:
            del self._albums[old]
        kept = [s for album in self._albums.values() for s in album.values()]
        self._supervisor.world.keep_only(kept)


def _failure(schedule: Schedule, judgement: Judgement) -> tuple[Action, frozenset[str]]:
    """What makes failures the same: the kind of fault, and what it showed."""
    (fault,) = schedule.attempts[-1]
    return fault.action, frozenset(finding.fingerprint for finding in judgement.roots)


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
    shift = snapshot.number - twin.number
    events = snapshot.log.so_far()
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
