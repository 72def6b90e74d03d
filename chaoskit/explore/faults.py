"""Which trials are made of faults other than a kill: a few of each kind, where they say most.

A kill is tried everywhere, because each point is another state. What is tried here is what the task
does about a kind of fault; for that some windows of each request are enough, and `--soak` draws
from the same kinds without end.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TypeVar

from chaoskit.explore.plan import points, window_of
from chaoskit.model.actions import AtPoint, Pause, Stop, Twin
from chaoskit.model.durations import duration_text
from chaoskit.model.errors import unknown_name
from chaoskit.model.events import Crossed, RequestReceived
from chaoskit.model.history import History
from chaoskit.model.points import CallPoint, CrossingPoint, Point, WindowPoint
from chaoskit.model.preludes import HOWS, WHOLE, Changed, Damage, damage_text
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Action, Fault, Schedule, before, kill

T = TypeVar("T")

FAULT_KINDS: Mapping[str, str] = {
    "stop": "SIGTERM, and SIGKILL half a second later: a deploy, an operator",
    "interrupt": "SIGINT, and SIGKILL half a second later: Ctrl-C",
    "pause": "the task stands still while somebody else resumes, and then goes on",
    "twin": "a second process of the task is started while the first one runs",
    "resumers": "several processes resume at the same moment",
    "clock": "a week passes before the resume, or less where resumed_within= says so",
    "damage": "a file that the task resumes from is torn, zeroed, empty, missing or an older one",
    "change": "what the scenario declares: another world, other inputs, environment or code",
    "services": "a service loses a reply, fails, rejects, lags, is down, or commits late",
}
"""What ``--faults`` takes, besides ``all`` and ``none``."""

EACH = 6
"""How many trials there are of each fault, at the most."""

ANY = "*"
_WITHOUT_A_TRACE = ("missing", "stale")
"""Where *all* that a task knows is gone, nothing is left that could tell it so. For an older copy
of all see `OLDER_WORLD`.
"""

OLDER_WORLD = before(f"damage:stale:{WHOLE}")
"""All files are older ones. What these do not hold a task may do again."""

GRACE_MS = 500
AT_POINT: Mapping[str, AtPoint] = {
    "stop": Stop("stop", GRACE_MS),
    "interrupt": Stop("interrupt", GRACE_MS),
    "pause": Pause(),
    "twin": Twin(),
}
"""The kinds of fault that land at a point, and what is done there."""

RESUMERS = (2, 8)
WEEK_S = 7 * 86400


@dataclass(frozen=True, slots=True)
class Ground:
    """What faults are drawn for.

    Args:
        history: an undisturbed run.
        found: the points that undisturbed runs pass.
        changes: the scenario's changes: by name the step that each comes after; empty for none.
        checkpoints: the scenario's patterns of files.
        settled: patterns of operations of which the task relies on that nothing is in flight.
        later_s: by how many seconds the clocks may advance before a resume, at the most.
    """

    history: History
    found: Sequence[Point]
    changes: Mapping[str, str] = field(default_factory=dict)
    checkpoints: Sequence[str] = ("*",)
    settled: Sequence[str] = ()
    later_s: int = WEEK_S

    @property
    def places(self) -> list[Point]:
        """Where a fault that needs no exact call may land: windows, and crossings where these are
        few.
        """
        windows: list[Point] = [
            window_of(body, window)
            for _, body in self.history.requests
            if body.wants is not None
            for window in ("received", "applied")
        ]
        if len(windows) >= EACH:
            return windows
        crossings = points(self.history, ("crossings",))
        return [*windows, *crossings] or [p for p in self.found if not isinstance(p, CallPoint)]

    @property
    def asks(self) -> list[RequestReceived]:
        """The requests for effects."""
        return [body for _, body in self.history.requests if body.wants is not None]


def ground_of(
    scenario: Scenario, history: History, found: Sequence[Point], after_s: int = 0
) -> Ground:
    """The ground that a scenario is.

    Args:
        scenario: the scenario.
        history: an undisturbed run.
        found: the points that undisturbed runs pass.
        after_s: by how much all clocks advance after each kill already.

    Raises:
        UsageError: a change comes after a step that this run does not do.
    """
    check_changes(scenario, history)
    limit_s = scenario.resumed_within_s
    return Ground(
        history,
        found,
        {name: change.after for name, change in scenario.changes.items()},
        tuple(scenario.checkpoints),
        tuple(scenario.settled),
        WEEK_S if limit_s is None else min(WEEK_S, int(limit_s) - after_s),
    )


def check_changes(scenario: Scenario, history: History) -> None:
    """See that an undisturbed run does each step after which a change is to come.

    Raises:
        UsageError: it does not; the message names the nearest ones that it does.
    """
    steps = (body.step for _, body in history.steps)
    known = dict.fromkeys([*steps, *(body.effect.operation for _, body in history.effects)])
    for name, change in scenario.changes.items():
        if change.after and history.done_at(change.after) is None:
            raise unknown_name(
                f"step or effect in after= of the change {name!r}", change.after, known
            )


def _places_for(ground: Ground, fault: Fault) -> list[Point]:
    """Where a kill may land before this prelude: for a change, not before it is one."""
    after = ground.changes.get(fault.action.name) if isinstance(fault.action, Changed) else ""
    if not after:
        return ground.places
    done = ground.history.done_at(after)
    return [] if done is None else [p for p in ground.places if _passed(ground.history, p) >= done]


def _passed(history: History, point: Point) -> int:
    """The event at which an undisturbed run passes a window or a crossing; -1: it is another kind
    of point.
    """
    if isinstance(point, CrossingPoint):
        name = point.name, point.ordinal
        return next((i for i, body in history.of(Crossed) if (body.name, body.ordinal) == name), -1)
    for index, body in history.requests:
        if isinstance(point, WindowPoint) and window_of(body, point.window) == point:
            applied = [i for i, effect in history.effects if effect.request == body.request]
            return max(applied, default=index) if point.window != "received" else index
    return -1


def at_points(ground: Ground, kinds: Sequence[str]) -> list[Fault]:
    """Every fault at a point, of these kinds."""
    return [
        Fault(action, point)
        for kind, action in AT_POINT.items()
        if kind in kinds
        for point in ground.places
    ]


def preludes(ground: Ground, kinds: Sequence[str]) -> list[Fault]:
    """What may be done before a resume, of these kinds."""
    found: list[str] = []
    if "resumers" in kinds:
        found += [f"resumers:{number}" for number in RESUMERS]
    if "clock" in kinds and ground.later_s > 0:
        found.append(f"clock:+{duration_text(ground.later_s)}")
    if "damage" in kinds:
        found += [
            damage_text(how, files)
            for files in ground.checkpoints
            for how in HOWS
            if files != ANY or how not in _WITHOUT_A_TRACE
        ]
        found += [str(OLDER_WORLD)] if ground.checkpoints else []
    if "change" in kinds:
        found += [f"change:{name}" for name in ground.changes]
    if "services" in kinds:
        found += [f"down:2@{service}.*#*" for service in _services(ground)]
        found += [f"lag:2@{service}.*search*#*" for service in _services(ground, searched=True)]
    return [before(text) for text in found]


def misbehaviours(ground: Ground, kinds: Sequence[str]) -> list[Fault]:
    """What a service may do to one request of the first attempt, of these kinds."""
    if "services" not in kinds:
        return []
    return [
        before(f"{kind}@{body.service}.{body.operation}#{body.ordinal}")
        for body in ground.asks
        for kind in _misdeeds(ground, body)
    ]


def _misdeeds(ground: Ground, body: RequestReceived) -> Iterator[str]:
    yield from ("lose-reply", "fail-after-commit", "late-reply:100ms", "reject:503")
    name = f"{body.service}.{body.operation}"
    if not any(fnmatchcase(name, pattern) for pattern in ground.settled):
        yield "commit-late:1"  # as a request in flight that lands late


def _services(ground: Ground, *, searched: bool = False) -> list[str]:
    """The services that are asked for effects; or only those in which things are looked up."""
    asked = {body.service for body in ground.asks}
    if searched:
        looks = [b for _, b in ground.history.requests if b.wants is None]
        asked &= {body.service for body in looks if "search" in body.operation}
    return sorted(asked)


def schedules(ground: Ground, kinds: Sequence[str], seed: int) -> list[Schedule]:
    """Some trials of each fault, chosen by seed, each of them alone.

    Args:
        ground: see `Ground`.
        kinds: of `FAULT_KINDS`.
        seed: decides where.
    """
    rng = random.Random(f"faults {seed}")
    wave: list[Schedule] = []
    by_action: dict[Action, list[Fault]] = {}
    for fault in at_points(ground, kinds):
        by_action.setdefault(fault.action, []).append(fault)
    for faults in by_action.values():
        wave += [Schedule(((fault,),)) for fault in _some(faults, rng)]
    places = ground.places
    for fault in preludes(ground, kinds):
        if fault == OLDER_WORLD:
            # Once the resume has succeeded: a second kill could miss it.
            wave += [Schedule(((kill(point),), (), (fault,))) for point in _some(places, rng)]
        elif isinstance(fault.action, Damage) and fault.action.how == "stale":
            # An older copy is there once an attempt has found files, which the second one does.
            pairs = _some(_in_the_resume(places), rng)
            wave += [Schedule(((kill(one),), (kill(two),), (fault,))) for one, two in pairs]
        else:
            chosen = _some(_places_for(ground, fault), rng)
            wave += [Schedule(((kill(point),), (fault,))) for point in chosen]
    by_kind: dict[str, list[Fault]] = {}
    for fault in misbehaviours(ground, kinds):
        by_kind.setdefault(fault.kind, []).append(fault)
    for faults in by_kind.values():
        wave += [Schedule(((fault,),)) for fault in _some(faults, rng)]
    return wave


def _in_the_resume(places: Sequence[Point]) -> list[tuple[Point, Point]]:
    """Points with one that a correct resume from there passes: its first request of that kind,
    where an undisturbed run has one more; or, without windows, the same place again.
    """
    windows = [point for point in places if isinstance(point, WindowPoint)]
    last = {(p.service, p.operation): p.ordinal for p in windows}
    again: list[tuple[Point, Point]] = [
        (point, replace(point, ordinal=1, window="received"))
        for point in windows
        if point.ordinal < last[point.service, point.operation]
    ]
    return again or [(point, point) for point in places]


def _some(of: Sequence[T], rng: random.Random) -> list[T]:
    """At most `EACH` of them, in their order."""
    if len(of) <= EACH:
        return list(of)
    return [of[i] for i in sorted(rng.sample(range(len(of)), EACH))]
