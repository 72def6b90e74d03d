"""Which worker gets which trials: those that share a state, or a way there, stay together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest

from chaoskit.model.schedule import Schedule

Batch = list[tuple[int, Schedule]]
"""Some trials of a wave, with their places in it."""

MOST = 16
"""Trials from snapshots that a worker runs before it says what came of them."""


def singles(waiting: Batch) -> list[Batch]:
    """Each trial by itself."""
    return [[trial] for trial in waiting]


def together(
    waiting: Batch, worlds: Mapping[str, str], workers: int, *, whole: bool
) -> list[Batch]:
    """Batches in an order in which each worker mostly gets neighbours.

    Args:
        waiting: trials of one wave.
        worlds: the state after a trial's last kill, by schedule, where that is known.
        workers: how many there are to keep busy to the end.
        whole: trials with the same beginning are never parted, so that one worker knows all the
            states that come of it.
    """
    size = max(1, min(MOST, len(waiting) // (2 * workers)))
    alike = _groups(waiting, lambda schedule: worlds.get(str(schedule), "") or _way(schedule))
    known = set(worlds.values())
    batches: list[Batch] = []
    for shared, group in alike.items():
        parted = not whole and shared not in known
        pieces = list(_cut(group, size)) if parted else [group]
        for piece in pieces:
            if batches and len(batches[-1]) + len(piece) <= size:
                batches[-1].extend(piece)
            else:
                batches.append(piece)
    return _spread(batches, workers)


def _way(schedule: Schedule) -> str:
    """What a trial shares with others whose states are not known."""
    if len(schedule.attempts) > 1:
        return str(Schedule(schedule.attempts[:-1]))
    return str(schedule)


def _groups(waiting: Batch, key: Callable[[Schedule], str]) -> dict[str, Batch]:
    found: dict[str, Batch] = {}
    for position, schedule in waiting:
        found.setdefault(key(schedule), []).append((position, schedule))
    return found


def _cut(group: Batch, size: int) -> Iterator[Batch]:
    for start in range(0, len(group), size):
        yield group[start : start + size]


def _spread(batches: Sequence[Batch], workers: int) -> list[Batch]:
    share = -(-len(batches) // workers)
    strands = [batches[i : i + share] for i in range(0, len(batches), share)] if batches else []
    return [batch for turn in zip_longest(*strands) for batch in turn if batch is not None]
