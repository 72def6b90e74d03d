"""Points that not every baseline run passes: they are tried all the same, and loss is counted.

Where the order of what a task does differs from run to run, a point that one run passed may not
come in another one. Further baselines say which points those are. Each is tried as often as any
other (`chaoskit.campaign.trials.TRIES`); one that never comes is lost, and the verdict says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from chaoskit.campaign.store import Store
from chaoskit.checkers.comparison import counted
from chaoskit.explore.names import renamed
from chaoskit.explore.plan import Mechanism, sweep
from chaoskit.model.expectation import Expectation
from chaoskit.model.history import History
from chaoskit.model.points import CallPoint, Point, WindowPoint, parse_point
from chaoskit.model.schedule import Schedule, parse_schedule
from chaoskit.trace.abi import SYNCS

FURTHER = 3
"""How many further baselines there are where the first two do not pass the same points."""

SHOWN_MOST = 3

STEADY, LOOSE = "points.steady", "points.loose"
"""Under which names the store keeps the points that all baselines passed, and that only some did;
nothing where all passed the same.
"""

Teach = Callable[[Sequence[History]], Expectation]
Baselines = tuple[History, History, Expectation]


def learnt(
    store: Store,
    runs: Sequence[History],
    teach: Teach,
    further: Callable[[int], Sequence[History]],
    mechanisms: Sequence[Mechanism],
) -> Baselines:
    """The first two baselines under the names that their points keep, and what all runs teach.

    Args:
        store: keeps which points only some runs passed.
        runs: two baselines, as they were traced.
        teach: what runs teach.
        further: makes so many more.
        mechanisms: which points there are.
    """
    expectation = teach(runs)
    named = [renamed(run, expectation.varying) for run in runs]
    loose = sweep(named, mechanisms)[1]
    if loose and not expectation.problems:
        runs = [*runs, *further(FURTHER)]
        expectation = teach(runs)
        named = [renamed(run, expectation.varying) for run in runs]
        loose = sweep(named, mechanisms)[1]
    if loose:
        store.put(STEADY, _texts(sweep(named, mechanisms)[0]))
        store.put(LOOSE, _texts(loose))
    return named[0], named[1], expectation


def loose_of(store: Store) -> list[Point]:
    """The points that only some baselines passed."""
    return _points(store.get(LOOSE))


def _texts(points: Sequence[Point]) -> str:
    return msgspec.json.encode([*map(str, points)]).decode()


def _points(texts: str | None) -> list[Point]:
    return [*map(parse_point, msgspec.json.decode(texts or "[]", type=list[str]))]


def put_all_loose(whole: Store, parts: Sequence[Store]) -> None:
    """Of a campaign in parts: what only some baselines of any part passed."""
    points = dict.fromkeys(point for part in parts for point in loose_of(part))
    whole.put(LOOSE, _texts([*points]))


def found(
    store: Store, first: History, second: History, mechanisms: Sequence[Mechanism]
) -> list[Point]:
    """Every point that a baseline passed, those that all of them did in order and first."""
    loose = loose_of(store)
    return _points(store.get(STEADY)) + loose if loose else sweep((first, second), mechanisms)[0]


def loose_point(schedule: Schedule, loose: AbstractSet[Point]) -> Point | None:
    """The one point of a trial, where only some baselines passed it."""
    points = [fault.point for faults in schedule.attempts for fault in faults]
    return points[0] if len(points) == 1 and points[0] in loose else None


def lost_of(store: Store) -> list[Point]:
    """The points that were seen in a baseline, tried, and never came again."""
    loose = set(loose_of(store))
    if not loose:
        return []
    missed = (parse_schedule(t.schedule) for t in store.trials() if not t.landed)
    lost = (loose_point(schedule, loose) for schedule in missed)
    return list(dict.fromkeys(point for point in lost if point is not None))


def why_unknown(store: Store, reached: int) -> str:
    """Why the verdict is UNKNOWN for what was lost; empty: it need not be.

    Args:
        store: the campaign.
        reached: how many per cent of the points that hold state must have come.
    """
    survey = store.survey()
    lost = lost_of(store)
    if survey is None or not lost:
        return ""
    requests = [body for run in survey[:2] for _, body in run.requests]
    services = {body.service for body in requests}
    asking = {(body.service, body.operation) for body in requests if body.wants is not None}
    bad = [str(point) for point in lost if _holds_state(point, services, asking)]
    alone = (parse_schedule(trial.schedule).alone for trial in store.trials())
    every = {fault.point for fault in alone if fault is not None} | {*lost}
    seen = sum(_holds_state(point, services, asking) for point in every)
    if not bad or 100 * (seen - len(bad)) >= reached * seen:
        return ""
    more = f" and {len(bad) - SHOWN_MOST} more" if len(bad) > SHOWN_MOST else ""
    return (
        f"{counted(len(bad), 'point')} that a baseline run passed did not come again, where the "
        f"task changes what it resumes from: {', '.join(bad[:SHOWN_MOST])}{more}; what it does "
        "differs from run to run (--reached says how many per cent must come)"
    )


def _holds_state(point: Point, services: set[str], asking: set[tuple[str, str]]) -> bool:
    """Whether a kill there can leave a state that no other point does, as far as is known.

    A look at a service changes nothing, nor does a sync.
    """
    match point:
        case CallPoint():
            return point.call not in SYNCS and point.target not in services
        case WindowPoint():
            return (point.service, point.operation) in asking
        case _:
            return True
