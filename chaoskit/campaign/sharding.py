"""Shards: one campaign on several machines that know nothing of each other.

Every shard makes the whole first wave, which follows from the surveys and the seed alone, and takes
its share of it. What is dealt out, one after the other, is groups: trials that leave equal worlds
share a resume, so they stay together, and a second kill is made from each state by one shard only.
Further waves need no dealing: a shard goes on from its own beginnings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from chaoskit.campaign.options import Options, Shard
from chaoskit.campaign.store import Store
from chaoskit.model.actions import Kill
from chaoskit.model.errors import UsageError
from chaoskit.model.schedule import Schedule, parse_schedule

SHARDS_MOST = 10_000
CAMPAIGN, PLAN, SHARE = "shard.campaign", "shard.plan", "shard.share"
"""Where a shard's store keeps the identity of the whole campaign, its whole first wave, and which
places of that are this shard's.
"""


class EmptyShardError(UsageError):
    """There are fewer groups of trials than shards, and none is left for this one."""


class Left(msgspec.Struct, frozen=True):
    """What a shard left to the others: trials of the first wave; and the points killed at there."""

    trials: int
    points: int


def shard_from(text: str) -> Shard:
    """The shard that ``K/N`` names.

    Raises:
        UsageError: it names none.
    """
    found = re.fullmatch(r"([0-9]{1,5})/([0-9]{1,5})", text.strip())
    if found is not None:
        number, of = int(found[1]), int(found[2])
        if 1 <= number <= of <= SHARDS_MOST:
            return Shard(number, of)
    raise UsageError(
        f"a shard is K/N with K from 1 to N, and N at most {SHARDS_MOST}, as in 1/3; not {text!r}"
    )


def check_shard(options: Options) -> None:
    """See that the campaign can be divided.

    Raises:
        UsageError: its trials depend on how long a run takes, which differs between machines.
    """
    if options.shard is None:
        return
    if options.soak_s is not None:
        raise UsageError(
            "a soak is not divided: leave --shard out and give each machine its --seed"
        )
    if options.times or "times" in options.mechanisms:
        raise UsageError(
            "random moments (--times) depend on how long a run takes, so that shards could not "
            "agree on them: leave --shard out and give each machine its --seed"
        )


def share(wave: Sequence[Schedule], worlds: Mapping[str, str], shard: Shard) -> list[int]:
    """The places in ``wave`` of the trials that are this shard's.

    The shares of all shards are disjoint and make up the wave; each holds every N-th group.

    Args:
        wave: the whole first wave.
        worlds: the world after a trial's fault, by the text of its schedule, where it is known;
            trials with equal worlds are one group, any other trial is one by itself.
        shard: which one.

    Raises:
        EmptyShardError: there is nothing left for this one.
    """
    groups: dict[str, list[int]] = {}
    for position, schedule in enumerate(wave):
        groups.setdefault(worlds.get(str(schedule)) or f"#{position}", []).append(position)
    dealt = list(groups.values())[shard.number - 1 :: shard.of]
    if not dealt:
        raise EmptyShardError(
            f"nothing is left for shard {shard}: there are {len(groups)} different things to try; "
            f"use at most {len(groups)} shards"
        )
    return sorted(position for group in dealt for position in group)


def most_of(most: int | None, shard: Shard | None) -> int | None:
    """A shard's part of a bound; those of all shards add up to it."""
    if most is None or shard is None:
        return most
    return most * shard.number // shard.of - most * (shard.number - 1) // shard.of


def put_share(store: Store, wave: Sequence[Schedule], mine: Sequence[int]) -> None:
    """Store the whole first wave, and which places of it are this shard's."""
    store.put(PLAN, msgspec.json.encode([str(schedule) for schedule in wave]).decode())
    store.put(SHARE, msgspec.json.encode(mine).decode())


def share_of(store: Store) -> list[int] | None:
    """The places that `put_share` stored; None before that."""
    stored = store.get(SHARE)
    return None if stored is None else msgspec.json.decode(stored, type=list[int])


def plan_of_all(store: Store) -> list[str]:
    """The whole first wave that `put_share` stored."""
    return msgspec.json.decode(store.get(PLAN) or "[]", type=list[str])


def left_of(store: Store) -> Left:
    """What the campaign in ``store`` left to other shards; nothing where it is whole."""
    mine = share_of(store)
    if mine is None:
        return Left(0, 0)
    own = set(mine)
    rest = [text for place, text in enumerate(plan_of_all(store)) if place not in own]
    alone = [parse_schedule(text).alone for text in rest]
    points = [fault for fault in alone if fault is not None and fault.action == Kill()]
    return Left(len(rest), len(points))
