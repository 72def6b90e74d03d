"""Joining: the shards of one campaign, put together as the campaign that they are parts of."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path

import msgspec

from chaoskit.campaign.baselines import put_all_loose
from chaoskit.campaign.judging import judge_again
from chaoskit.campaign.options import Options, Shard
from chaoskit.campaign.sharding import CAMPAIGN, plan_of_all, share_of
from chaoskit.campaign.shrinking import put_shrunken, shrunken_of
from chaoskit.campaign.store import CLOSED, FURTHER, NO_VIEW, REFUTED, Store, StoredTrial
from chaoskit.model.errors import UsageError
from chaoskit.model.schedule import Schedule, parse_schedule

COMPLETE = "complete"
_COPIED = (
    *("forked", "settled", "resumed_within", "restorable", "real"),
    *(NO_VIEW, CLOSED, "points.total"),
)
_ELSEWHERE = ("shard", "jobs", "runs", "work_root", "fresh")


def join(folders: Sequence[Path], into: Path) -> None:
    """Make one campaign of shards that have ended.

    Its trials, places, artefacts and lines of code are theirs; the seconds are those of all
    machines together. How many states there are is not exact: shards tell them apart by bytes, and
    times of day are among these. If shards learnt different fields to be volatile, every trial is
    judged again by what the one learnt that learnt most. What is there stays as it is.

    Args:
        folders: of the shards; in any order.
        into: the campaign's folder, which must not be there yet.

    Raises:
        UsageError: they are not all the shards of one campaign, each of them once and ended;
            or ``into`` is there.
    """
    if into.exists() or into.is_symlink():
        raise UsageError(f"{into} is there already: name a folder that is not")
    with ExitStack() as stack:
        shards = sorted(
            (_Part(folder, stack.enter_context(Store(folder))) for folder in folders),
            key=lambda part: part.shard.number,
        )
        _check(shards)
        into.parent.mkdir(parents=True, exist_ok=True)
        beside = into.with_name(f".{into.name}-{os.getpid()}")
        beside.mkdir()
        try:
            with Store(beside, writable=True) as whole:
                _fill(whole, shards)
            beside.rename(into)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


class _Part:
    """One shard's store, with what it was asked to do."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.folder = folder
        self.store = store
        self.options = msgspec.json.decode(store.get("options") or "{}", type=Options)
        if self.options.shard is None:
            raise UsageError(
                f"{folder} is no shard, but a whole campaign: chaoskit report shows it"
            )
        self.shard: Shard = self.options.shard

    def __str__(self) -> str:
        return f"shard {self.shard} ({self.folder})"


def _check(parts: Sequence[_Part]) -> None:
    """See that these are all the shards of one campaign.

    Raises:
        UsageError: they are not.
    """
    if not parts:
        raise UsageError("give the folders of the shards")
    for one in parts:
        if one.store.get("finished") is None:
            raise UsageError(f"{one} has not ended: the command that began it goes on with it")
        if share_of(one.store) is None:
            raise UsageError(
                f"{one} has no trials: its survey proves nothing; chaoskit report {one.folder}"
            )
    first = parts[0]
    for one, other in combinations(parts, 2):
        if one.shard == other.shard:
            raise UsageError(f"{one} and {other} are the same one: give each of them once")
    for other in parts[1:]:
        if other.store.get(CAMPAIGN) != first.store.get(CAMPAIGN) or other.shard.of != (
            first.shard.of
        ):
            raise UsageError(
                f"{first} and {other} are of different campaigns: {_why(first, other)}"
            )
        _check_plans(first, other)
    _check_shares(parts)
    _check_copies(parts)


def _why(one: _Part, other: _Part) -> str:
    """In what two campaigns differ."""
    if one.shard.of != other.shard.of:
        return f"they were divided into {one.shard.of} and into {other.shard.of}"
    differ = [
        name
        for name in Options.__struct_fields__
        if name not in _ELSEWHERE and getattr(one.options, name) != getattr(other.options, name)
    ]
    if differ:
        return f"{', '.join(differ)} differ; run them with the same words but for --shard"
    return "the files of the task differ; run them from the same commit"


def _check_copies(parts: Sequence[_Part]) -> None:
    """See that no shard used snapshots that another one has seen refuted."""
    refuted = next((part for part in parts if part.store.get(REFUTED)), None)
    trusting = next((p for p in parts if any(not t.real for t in p.store.trials())), None)
    if refuted is not None and trusting is not None:
        raise UsageError(
            f"{trusting} used snapshots, and {refuted} found them wrong "
            f"({refuted.store.get(REFUTED)}): run all shards again with --no-snapshots"
        )


def _check_plans(one: _Part, other: _Part) -> None:
    here, there = plan_of_all(one.store), plan_of_all(other.store)
    if here != there:
        odd = [text for text in (*here, *there) if (text in here) != (text in there)] or here[:1]
        raise UsageError(
            f"{one} and {other} did not plan the same trials, as the task did not do the same "
            f"things in both ({odd[0]}): leave --shard out, or make the task repeatable"
        )


def _check_shares(parts: Sequence[_Part]) -> None:
    """See that the shares are disjoint, and all of the first wave."""
    plan = plan_of_all(parts[0].store)
    taken: dict[int, _Part] = {}
    for part in parts:
        for place in share_of(part.store) or ():
            if place in taken:
                raise UsageError(
                    f"{taken[place]} and {part} both have the trial {plan[place]}: the task left "
                    "other files behind in one of them, so that they were divided differently; "
                    "leave --shard out, or run them on machines that are alike"
                )
            taken[place] = part
    rest = [text for place, text in enumerate(plan) if place not in taken]
    if rest:
        of, there = parts[0].shard.of, {part.shard.number for part in parts}
        missing = [f"{number}/{of}" for number in range(1, of + 1) if number not in there]
        raise UsageError(
            f"{len(rest)} of {len(plan)} trials of the first wave are in none of these shards"
            + (f"; give {', '.join(missing)} as well" if missing else f", as {rest[0]}")
        )


def _fill(whole: Store, parts: Sequence[_Part]) -> None:
    """Write everything into the new store."""
    first = parts[0]
    whole.put("identity", first.store.get(CAMPAIGN) or "")
    options = msgspec.structs.replace(first.options, shard=None)
    whole.put("options", msgspec.json.encode(options).decode())
    for key in _COPIED:
        value = first.store.get(key)
        if value is not None:
            whole.put(key, value)
    for wave in range(2, options.depth + 1):
        key = FURTHER.format(wave)
        whole.put(key, str(sum(int(part.store.get(key) or 0) for part in parts)))
    for refuted in filter(None, (part.store.get(REFUTED) for part in parts)):
        whole.put(REFUTED, refuted)
    put_all_loose(whole, [part.store for part in parts])
    _fill_trials(whole, parts)
    whole.put_locations({p: at for part in parts for p, at in part.store.locations().items()})
    shrunken = {
        (one.kind, one.operation, one.smallest): one
        for part in parts
        for one in shrunken_of(part.store)
    }
    if shrunken:
        put_shrunken(whole, tuple(shrunken.values()))
    _fill_survey(whole, parts)
    seconds = sum(float(part.store.get("seconds") or 0) for part in parts)
    whole.put("seconds", f"{seconds:.3f}")
    ends = [part.store.get("finished") or "" for part in parts]
    whole.put("finished", next((end for end in ends if end != COMPLETE), COMPLETE))


def _fill_trials(whole: Store, parts: Sequence[_Part]) -> None:
    """Every trial, with the place that it has in the whole campaign.

    In the first wave it has that already. A later one stands where its beginning does, which is in
    the wave before it.
    """
    everything = [(trial, part) for part in parts for trial in part.store.trials()]
    control = [pair for pair in everything if pair[0].wave == 0][:1]
    before: dict[str, int] = {}
    for wave in range(max(trial.wave for trial, _ in everything) + 1):
        own = [pair for pair in everything if pair[0].wave == wave] if wave else control
        if wave > 1:
            own.sort(key=lambda pair: (_place(pair[0], before), pair[0].position))
        places = {
            trial.schedule: place if wave > 1 else trial.position
            for place, (trial, _) in enumerate(own)
        }
        for trial, part in own:
            _copy(trial, part, whole, places)
        before = places


def _place(trial: StoredTrial, before: Mapping[str, int]) -> int:
    beginning = str(Schedule(parse_schedule(trial.schedule).attempts[:-1]))
    return before.get(beginning, len(before))


def _copy(trial: StoredTrial, part: _Part, whole: Store, places: Mapping[str, int]) -> None:
    place = places[trial.schedule]
    moved = msgspec.structs.replace(trial, position=place)
    whole.put_trial(moved, part.store.history(trial.schedule).encode())
    kept = part.store.artefacts(trial.wave, trial.position)
    if kept.is_dir():
        shutil.copytree(kept, whole.artefacts(trial.wave, place), symlinks=True)


def _fill_survey(whole: Store, parts: Sequence[_Part]) -> None:
    """The survey by which trials are judged; all of them again where shards judged differently."""
    surveys = [survey for part in parts if (survey := part.store.survey()) is not None]
    best = max(surveys, key=lambda survey: sum(map(len, survey[2].volatile.values())))
    whole.put_survey(*best)
    if any(other[2].volatile != best[2].volatile for other in surveys):
        judge_again(whole)
