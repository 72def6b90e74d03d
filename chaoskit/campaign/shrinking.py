"""Shrinking by real trials: from a token to the token of the smallest trial with the same finding.

`chaoskit.explore.shrink` says what is tried and in which order. Here it is run: the token's own
trial first, which tells what is looked for and where its timed faults land; then each candidate,
once; at the end the smallest one is replayed as anybody would replay it, with surveys of its own.

The same finding is one of the same kind, operation and diagnosis, and it is shown by a resume in
both trials or in neither (`repeating.Sought`): no fault of a resume is shrunk to one of a first
attempt that fails by itself. Its fingerprint may be another one, since an earlier point or a
smaller input meets another customer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from chaoskit.campaign.bench import Bench
from chaoskit.campaign.mechanisms import best
from chaoskit.campaign.options import Options
from chaoskit.campaign.repeating import REPEATS, Likeness, Sought, named
from chaoskit.campaign.replay import Outcome, Replayed, replay
from chaoskit.campaign.store import Store
from chaoskit.explore.landed import part_that_landed, places_of_times
from chaoskit.explore.plan import Mechanism, points
from chaoskit.explore.shrink import MOST, Candidate, Shrinker
from chaoskit.model.findings import Finding
from chaoskit.model.history import History
from chaoskit.model.points import CallPoint, CrossingPoint, Point, WindowPoint
from chaoskit.model.schedule import Schedule, parse_schedule
from chaoskit.model.token import ReplayToken
from chaoskit.probe.lines import LINE
from chaoskit.trial.loading import load

ORDER = (
    "fewer faults, then fewer attempts, then exact points in place of times, then earlier points, "
    "then fewer items of the input"
)
"""In which order two candidates are compared."""

GROUPS_MOST = 3
"""How many findings of one campaign are shrunk: of each kind, operation and diagnosis one."""

_SHRUNK = "shrunk"


@dataclass(frozen=True, slots=True)
class Began:
    """The token's own trial showed ``finding``; ``schedule`` is what of its schedule landed.

    ``same``: it is the token's own finding. A timed fault that lands elsewhere may show another one
    in each trial; then that is the one that is shrunk.
    """

    schedule: Schedule
    finding: Finding
    same: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """A candidate was tried; ``shows``: it is the smallest one known from now on."""

    candidate: Candidate
    shows: bool
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """``token`` names the smallest trial, or (``began`` False) the one that shows nothing any more.

    Args:
        token: replays it.
        replayed: what came of a replay of it.
        began: whether the first trial showed the finding, so that anything could be shrunk.
        trials: how many were run, the replay's aside.
        surveys: how many; each of them is two runs.
        items: how many items the input had to begin with, if it is a list.
        cut_off: not everything was tried, so that there may be a smaller one.
    """

    token: ReplayToken
    replayed: Replayed
    began: bool
    trials: int
    surveys: int
    items: int | None
    cut_off: bool


Step = Began | Asked | Ended


@dataclass(frozen=True, slots=True)
class Known:
    """A trial with a finding, as it was run: where to begin, without running it again."""

    history: History
    finding: Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How hard to look for a smaller trial.

    Args:
        mechanisms: which points are tried; those of the token's own schedule by default, and every
            one that works here in place of a time.
        most: how many candidates are tried at most.
        seconds: no candidate is tried any more after so long.
        work_root: where work folders are made.
    """

    mechanisms: Sequence[Mechanism] = ()
    most: int = MOST
    seconds: float = math.inf
    work_root: str = ""


ALL_OF_IT = Effort()


def shrink(
    token: ReplayToken, known: Known | None = None, effort: Effort = ALL_OF_IT
) -> Iterator[Step]:
    """Shrink what ``token`` shows; the last step is `Ended`.

    Args:
        token: of a trial with a finding.
        known: that trial, where it is stored; a timed fault may never land there again.
        effort: how hard to look.

    Raises:
        UsageError: the target is not there, or cannot be run.
        HarnessError: chaoskit itself failed.
    """
    ends = time.monotonic() + effort.seconds
    chosen = tuple(effort.mechanisms) or _mechanisms(parse_schedule(token.schedule))
    items = _items(token)
    cut_off = False
    after_s = token.resume_after_s
    with Bench(token.target, token.seed, effort.work_root, chosen, resume_after_s=after_s) as bench:
        start = None
        if not bench.survey(token.take).expectation.problems:
            start = known if known is not None else _start(bench, token)
        if start is not None:
            schedule = part_that_landed(start.history, parse_schedule(token.schedule))
            same = start.finding.fingerprint == token.fingerprint
            yield Began(schedule, start.finding, same)
            shrinker = Shrinker(
                Candidate(schedule, token.take),
                orders=_orders(bench, token.take, start.history, chosen),
                landed=places_of_times(start.history),
                items=items,
                most=effort.most,
            )
            search = _Search(bench, shrinker, start)
            while shrinker.proposal is not None and time.monotonic() < ends:
                yield search.ask(shrinker.proposal)
            cut_off = shrinker.cut_off or shrinker.proposal is not None
            token = _token(token, shrinker.smallest, search.finding)
    yield Ended(
        token=token,
        replayed=replay(token, effort.work_root),
        began=start is not None,
        trials=bench.trials,
        surveys=bench.surveys,
        items=items,
        cut_off=cut_off,
    )


class _Search:
    """Answers the shrinker's proposals by trials, and remembers what the smallest one shows."""

    def __init__(self, bench: Bench, shrinker: Shrinker, start: Known) -> None:
        self._bench = bench
        self._shrinker = shrinker
        self._sought = Sought.of(start.finding, start.history)
        self.finding = start.finding

    def ask(self, candidate: Candidate) -> Asked:
        found = None
        if not self._bench.survey(candidate.take).expectation.problems:
            tried = self._bench.trial(candidate.schedule, candidate.take)
            if tried.landed:
                found = self._sought.among(tried.judgement, tried.history)
        if found is not None:
            self.finding = found
        self._shrinker.tell(found is not None)
        return Asked(candidate, found is not None, self._bench.trials)


def _start(bench: Bench, token: ReplayToken) -> Known | None:
    """The token's own trial, repeated until it shows the finding; any other where it never does.

    Each second one tells of more points, for which it takes more time.
    """
    schedule = parse_schedule(token.schedule)
    other = None
    for number in range(REPEATS):
        tried = bench.trial(schedule, token.take, tell=number % 2 == 0)
        finding = named(token.fingerprint)(tried.judgement)
        if finding is not None:
            return Known(tried.history, finding)
        if other is None and tried.judgement.roots:
            other = Known(tried.history, tried.judgement.roots[0])
    return other


def _orders(
    bench: Bench, take: int | None, history: History, mechanisms: Sequence[Mechanism]
) -> list[list[Point]]:
    """The points of each attempt: the survey's for the first, as far as a trial came for others."""
    orders = [points(bench.survey(take).first, mechanisms)]
    later = range(2, len(history.attempts) + 1)
    return orders + [points(history, mechanisms, attempt) for attempt in later]


def _mechanisms(schedule: Schedule) -> tuple[Mechanism, ...]:
    """Those that the points of ``schedule`` come from; the best that work here for a time."""
    if schedule.timed:
        return tuple(dict.fromkeys((*best(), "crossings")))
    every = [fault.point for faults in schedule.attempts for fault in faults]
    return tuple(dict.fromkeys(map(_mechanism, every)))


def _mechanism(point: Point) -> Mechanism:
    match point:
        case CallPoint():
            return "calls"
        case WindowPoint():
            return "windows"
        case CrossingPoint() if point.name.startswith(LINE):
            return "lines"
        case _:
            return "crossings"


def _items(token: ReplayToken) -> int | None:
    """How many items the inputs have, if they are a list."""
    made = load(token.target, token.take).inputs(token.seed)
    return len(made) if isinstance(made, list | tuple) else None


def _token(token: ReplayToken, smallest: Candidate, finding: Finding) -> ReplayToken:
    return msgspec.structs.replace(
        token,
        schedule=str(smallest.schedule),
        take=smallest.take,
        fingerprint=finding.fingerprint,
    )


def in_words(schedule: str, take: int | None) -> str:
    """A trial in one line."""
    if take is None:
        return schedule
    items = "item" if take == 1 else f"{take} items"
    return f"{schedule}, with the first {items} of the input"


class Shrunken(msgspec.Struct, frozen=True, kw_only=True):
    """One finding of a campaign, shrunk. The JSON report has these.

    ``schedule`` is the one that was found, ``smallest`` the one that is left of it, with the first
    ``take`` of the input's ``items`` (None: all of them, or no list). ``outcome`` is what a replay
    of it came to.
    """

    kind: str
    operation: str
    schedule: str
    smallest: str
    take: int | None
    items: int | None
    trials: int
    outcome: Outcome
    cut_off: bool
    replay: str


def worth_shrinking(store: Store, *, everything: bool = False) -> list[tuple[ReplayToken, Known]]:
    """For each kind, operation and diagnosis the smallest trial of a campaign that shows it.

    One that is a single kill at an exact point is left out, unless ``everything`` is asked for: a
    sweep meets those in their order, and only the input could still be smaller.
    """
    options = msgspec.json.decode(store.get("options") or "", type=Options)
    found: dict[Likeness, tuple[tuple[int, int, bool], Finding, str]] = {}
    for trial in store.trials():
        schedule = parse_schedule(trial.schedule)
        size = (schedule.faults, len(schedule.attempts), schedule.timed)
        for finding in trial.judgement.roots:
            known = found.get(Likeness.of(finding))
            if schedule.faults and (known is None or size < known[0]):
                found[Likeness.of(finding)] = size, finding, trial.schedule
    return [
        (
            ReplayToken(
                target=options.target,
                seed=options.seed,
                schedule=schedule,
                fingerprint=finding.fingerprint,
                resume_after_s=options.resume_after_s,
            ),
            Known(store.history(schedule), finding),
        )
        for (kills, _, timed), finding, schedule in found.values()
        if everything or kills > 1 or timed
    ]


def put_shrunken(store: Store, shrunken: Sequence[Shrunken]) -> None:
    """Store what was shrunk, for the reports."""
    store.put(_SHRUNK, msgspec.json.encode(shrunken).decode())


def shrunken_of(store: Store) -> tuple[Shrunken, ...]:
    """What `put_shrunken` stored."""
    return msgspec.json.decode(store.get(_SHRUNK) or "[]", type=tuple[Shrunken, ...])


def shrunken(found: ReplayToken, known: Known, ended: Ended) -> Shrunken:
    """What the report says of one finding: it was ``found`` and ``known``, and has ``ended``."""
    return Shrunken(
        kind=known.finding.kind,
        operation=known.finding.operation,
        schedule=found.schedule,
        smallest=ended.token.schedule,
        take=ended.token.take,
        items=ended.items,
        trials=ended.trials,
        outcome=ended.replayed.outcome,
        cut_off=ended.cut_off,
        replay=f"chaoskit replay {ended.token}",
    )
