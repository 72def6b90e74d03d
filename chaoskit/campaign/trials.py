"""How a worker runs the trials of a job: each by a real kill, or from snapshots of one run.

A snapshot is the durable world at a point: the work folder and the services' worlds, copied while
the task waits there. What a SIGKILL leaves behind is just that, so going on from the copy is the
trial without the part before the kill. Two guards keep it honest: every trial that is not VALID
is run once more by a real kill, whose result is the one that counts, and so is the first trial of
every job. Points with equal worlds share one resume.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from copy import copy

import msgspec

from chaoskit.checkers.check import judge
from chaoskit.model.events import (
    Body,
    EffectApplied,
    Event,
    FaultLanded,
    ReplySent,
    RequestReceived,
)
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Judgement
from chaoskit.model.history import History
from chaoskit.model.points import Point
from chaoskit.model.schedule import Schedule
from chaoskit.trial.supervisor import Snapshot, Supervisor


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One trial. ``real`` says that a process was killed for it, not only looked at."""

    history: bytes
    judgement: Judgement | None = None
    landed: int = 0
    real: bool = True


DOUBT = "a copy of the world"
"""How the reason begins where a snapshot and a real kill disagree."""

Keep = Callable[[Schedule, History], None]
"""Called after a real trial that has findings, while its work folder is still there."""


def told(history: History) -> Result:
    """A run that is not judged (a survey's)."""
    return _result(history, None, real=True)


async def real_trial(
    supervisor: Supervisor, schedule: Schedule, expectation: Expectation | None, keep: Keep
) -> Result:
    """Run ``schedule`` by real kills; a survey (no expectation) is not judged."""
    history = await supervisor.run(schedule)
    judgement = judge(history, expectation, schedule) if expectation is not None else None
    if judgement is not None and judgement.findings:
        keep(schedule, history)
    return _result(history, judgement, real=True)


def fits_snapshots(
    supervisor: Supervisor, schedules: Sequence[Schedule], seen: Expectation
) -> bool:
    """Whether these trials can be run from snapshots.

    The services must be able to go back, a request must be alone when it is looked at (what else is
    in flight would have to land), and nothing may hang on a time.
    """
    return (
        supervisor.can_snapshot
        and seen.ordered
        and len(schedules) > 1
        and not any(s.timed or not s.attempts or len(s.attempts[-1]) != 1 for s in schedules)
    )


async def snapshot_trials(
    supervisor: Supervisor, schedules: Sequence[Schedule], expectation: Expectation, keep: Keep
) -> list[Result]:
    """Run ``schedules`` from snapshots, one recorded run for each beginning that they share."""
    results: dict[Schedule, Result] = {}
    groups: dict[Schedule, list[Schedule]] = {}
    for schedule in schedules:
        groups.setdefault(Schedule(schedule.attempts[:-1]), []).append(schedule)
    for before, members in groups.items():
        album = await supervisor.record(before, [_last(schedule) for schedule in members])
        await _group(supervisor, members, album, expectation, keep, results)
    return [results[schedule] for schedule in schedules]


async def _group(  # noqa: PLR0913 - one group's whole context
    supervisor: Supervisor,
    members: Sequence[Schedule],
    album: Mapping[Point, Snapshot],
    expectation: Expectation,
    keep: Keep,
    results: dict[Schedule, Result],
) -> None:
    known: dict[bytes, tuple[Snapshot, History]] = {}
    for schedule in members:
        snapshot = album.get(_last(schedule))
        if snapshot is None:  # this recording took another way
            results[schedule] = await real_trial(supervisor, schedule, expectation, keep)
            continue
        world = _digest(snapshot)
        if world in known:
            history = _retold(snapshot, schedule, *known[world])
        else:
            history = await supervisor.resume(snapshot, schedule)
            known[world] = (snapshot, history)
        judgement = judge(history, expectation, schedule)
        results[schedule] = _result(history, judgement, real=False)
        if judgement.verdict != "VALID" or schedule is members[0]:
            truth = await real_trial(supervisor, schedule, expectation, keep)
            results[schedule] = _confirmed(judgement, truth)


def _confirmed(judgement: Judgement, truth: Result) -> Result:
    """What a real kill said, and a doubt where it said something else than the copy."""
    assert truth.judgement is not None
    seen, real = _kinds(judgement), _kinds(truth.judgement)
    if seen == real:
        return truth
    doubt = f"{DOUBT} showed {seen or 'nothing'}, a real kill {real or 'nothing'}"
    verdict = "INVALID" if truth.judgement.findings else "UNKNOWN"
    changed = msgspec.structs.replace(
        truth.judgement, verdict=verdict, unknowns=(*truth.judgement.unknowns, doubt)
    )
    return msgspec.structs.replace(truth, judgement=changed)


def _kinds(judgement: Judgement) -> str:
    return ", ".join(sorted({finding.kind for finding in judgement.roots}))


def _digest(snapshot: Snapshot) -> bytes:
    """Equal for equal worlds: every file of the copy, and what the services know."""
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted(snapshot.folder.rglob("*")):
        name = str(file.relative_to(snapshot.folder)).encode()
        content = file.read_bytes() if file.is_file() else b""
        digest.update(b"%d %d " % (len(name), len(content)) + name + content)
    for world in snapshot.worlds:
        digest.update(b"%d " % len(world) + world)
    return digest.digest()


def _retold(snapshot: Snapshot, schedule: Schedule, twin: Snapshot, told: History) -> History:
    """The history of a trial whose resume was already run from an equal world.

    The events up to the kill are this trial's own; those after it are its twin's, renumbered.
    """
    shift = next(copy(snapshot.numbers)) - next(copy(twin.numbers))
    events = list(snapshot.events)
    (fault,) = schedule.attempts[-1]
    late_us = (events[-1].at_us if events else 0) - (twin.events[-1].at_us if twin.events else 0)
    for event in told.events[len(twin.events) :]:
        body = event.body
        if isinstance(body, FaultLanded) and body.attempt == snapshot.attempt:
            body = FaultLanded(snapshot.attempt, str(fault))
        events.append(Event(len(events), event.at_us + late_us, _shifted(body, shift)))
    return History(tuple(events))


def _shifted(body: Body, shift: int) -> Body:
    if isinstance(body, RequestReceived | ReplySent):
        return msgspec.structs.replace(body, request=body.request + shift)
    if isinstance(body, EffectApplied) and body.request is not None:
        return msgspec.structs.replace(body, request=body.request + shift)
    return body


def _last(schedule: Schedule) -> Point:
    return schedule.attempts[-1][0].point


def _result(history: History, judgement: Judgement | None, *, real: bool) -> Result:
    return Result(
        history=history.encode(), judgement=judgement, landed=len(history.landed), real=real
    )
