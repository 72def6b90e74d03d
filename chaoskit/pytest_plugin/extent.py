"""How far a campaign went: what it left out, and whether it tried what could show a gap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from chaoskit.campaign.baselines import loose_of
from chaoskit.campaign.options import Options
from chaoskit.campaign.sharding import left_of
from chaoskit.campaign.store import Store, StoredTrial
from chaoskit.model.actions import Kill, Kills, Late, PowerLoss
from chaoskit.model.errors import UsageError
from chaoskit.model.points import Point
from chaoskit.model.schedule import Action, Schedule, parse_schedule
from chaoskit.pytest_plugin.gaps import Known
from chaoskit.reporting.summary import Summary, clocks_of

Way = tuple[Action, type[Point]]
"""What a fault does, and the kind of its point."""

_EVERYWHERE = Kills
"""What a campaign does at every point. Of all else it does a few, and may choose others if the task
has changed.
"""


@dataclass(frozen=True, slots=True)
class Extent:
    """How far a campaign went.

    Args:
        left_out: why it is not everything that its words ask for, in sentences; empty: it is.
        landed: the schedules of trials in which every fault took place; those in which a clock
            fault did not advance the task's own clock are left out.
        tried: what was done in these, and at what kind of point.
        depth: the most attempts of one trial that suffered a fault.
    """

    left_out: tuple[str, ...]
    landed: frozenset[str]
    tried: frozenset[Way]
    depth: int

    @property
    def whole(self) -> bool:
        """Nothing was sampled, cut off or left to others."""
        return not self.left_out

    def could_show(self, gap: Known) -> bool:
        """Whether the campaign tried what could show ``gap``.

        It did if one of the trials that showed it was run again; or if it was whole, and did what
        they did at every point where that can be done. Where a person wrote the gap down, nothing
        is known of such trials, and being whole is enough.
        """
        if not self.landed.isdisjoint(gap.shown_at):
            return True
        return self.whole and (not gap.shown_at or any(map(self._did_like, gap.shown_at)))

    def _did_like(self, text: str) -> bool:
        try:
            schedule = parse_schedule(text)
        except UsageError:  # of another version: nothing says that it was tried
            return False
        ways = _ways(schedule)
        everywhere = all(isinstance(action, _EVERYWHERE) for action, _ in ways)
        return everywhere and schedule.faults <= self.depth and ways <= self.tried


def extent_of(store: Store, options: Options, summary: Summary) -> Extent:
    """How far the campaign in ``store`` went."""
    trials = [trial for trial in store.trials() if trial.wave > 0]
    landed = [
        parse_schedule(trial.schedule)
        for trial in trials
        if trial.landed and not clocks_of(store, options, trial)
    ]
    sizes = Counter(map(_sort, trials))
    return Extent(
        left_out=tuple(_left_out(store, options, summary, sizes)),
        landed=frozenset(map(str, landed)),
        tried=frozenset(way for schedule in landed for way in _ways(schedule)),
        depth=max((schedule.faults for schedule in landed), default=0),
    )


def _ways(schedule: Schedule) -> frozenset[Way]:
    faults = (fault for faults in schedule.attempts for fault in faults)
    return frozenset((fault.action, type(fault.point)) for fault in faults)


def _sort(trial: StoredTrial) -> tuple[int, str]:
    """What ``--max-points`` bounds together: a wave, and in the first one a sort of fault."""
    alone = parse_schedule(trial.schedule).alone
    if trial.wave > 1:
        return trial.wave, ""
    match alone.action if alone is not None else None:
        case Late():
            return 1, "late"
        case PowerLoss():
            return 1, "power"
        case Kill():
            return 1, "kill"
        case _:
            return 1, "other"


def _left_out(
    store: Store, options: Options, summary: Summary, sizes: Counter[tuple[int, str]]
) -> Iterator[str]:
    points = summary.points
    if (finished := store.get("finished")) != "complete":
        yield finished or "the campaign was interrupted"
    if "calls" not in options.mechanisms:
        yield "system calls, which cannot be traced here: chaoskit doctor says why"
    if options.shard is not None:
        yield f"{left_of(store).trials} trials are other shards', this is {options.shard}"
    if points.landed < points.total:
        yield f"{points.total - points.landed} of {points.total} points were not tried"
    elif _sampled(options, sizes):
        yield f"a sample of {options.max_points} of each kind of fault in each wave"
    if loose := len(loose_of(store)):
        yield f"the undisturbed runs differ in {loose} points, so that this is a sample"


def _sampled(options: Options, sizes: Counter[tuple[int, str]]) -> bool:
    """Whether a bound may have cut something off, when every point was killed at."""
    most = options.max_points
    return most is not None and any(
        number >= most for sort, number in sizes.items() if sort != (1, "kill")
    )
