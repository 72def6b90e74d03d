"""What differs between two runs of a task: what got fixed, what is new, what remains.

A flaw is the same in both runs if it has the same kind, operation and diagnosis: its fingerprint
names one customer, and another seed or point meets another one. A flaw that is not shown any more
is fixed only if a trial that showed it was tried again; else nobody looked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from chaoskit.campaign.options import Options
from chaoskit.campaign.store import Store
from chaoskit.explore.plan import points
from chaoskit.model.effects import Effect, identity_of
from chaoskit.model.events import (
    AttemptEnded,
    Body,
    CallSeen,
    Crossed,
    EffectApplied,
    ReplySent,
    RequestReceived,
    TraceNoted,
)
from chaoskit.model.history import History
from chaoskit.reporting.clean import cleaned
from chaoskit.reporting.summary import Flaw, Summary, flaw_of, summarize
from chaoskit.reporting.timeline import Line, told


class Change(msgspec.Struct, frozen=True):
    """A flaw, and the schedules of the trials that showed it ``before`` and ``after``.

    ``came``: trials that show it now, and were tried before and did not. ``went``: trials that
    showed it, and are tried now and do not.
    """

    flaw: Flaw
    before: tuple[str, ...]
    after: tuple[str, ...]
    came: tuple[str, ...] = ()
    went: tuple[str, ...] = ()


class Parting(msgspec.Struct, frozen=True):
    """One schedule in both runs, and the first event at which its two trials part.

    ``number`` counts the events that are alike; None: the whole trials are. ``shared`` is the last
    of them that is alike; ``before`` and ``after`` are what each trial does next, None at its end.
    """

    schedule: str
    verdicts: tuple[str, str]
    number: int | None = None
    shared: Line | None = None
    before: Line | None = None
    after: Line | None = None


class Differences(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between two runs.

    Args:
        before: the summary of the first one.
        after: of the second one.
        fixed: flaws that were shown before, and not by trials that were tried again.
        untried: flaws that were shown before, by trials of which none was tried again.
        new: flaws that only the second run shows.
        remaining: flaws that both show.
        came: points that only the second run has.
        went: points that only the first one has.
        parting: of one schedule.
        notes: what makes the comparison less than exact.
    """

    before: Summary
    after: Summary
    fixed: tuple[Change, ...] = ()
    untried: tuple[Change, ...] = ()
    new: tuple[Change, ...] = ()
    remaining: tuple[Change, ...] = ()
    came: tuple[str, ...] = ()
    went: tuple[str, ...] = ()
    parting: Parting | None = None
    notes: tuple[str, ...] = ()

    @property
    def worse(self) -> bool:
        """Whether the second run shows a flaw that is new, or new at a trial that was tried."""
        return bool(self.new) or any(change.came for change in self.remaining)


def compare(first: Store, second: Store, schedule: str = "") -> Differences:
    """What differs from the first run to the second.

    Args:
        first: the earlier one.
        second: the later one.
        schedule: which trial to follow to where it parts; by default the first one of which the
            verdict differs.
    """
    before, after = summarize(first), summarize(second)
    known, now = _verdicts(first), _verdicts(second)
    changes = _changes(_flaws(first), _flaws(second), known.keys(), now.keys())
    old_points, new_points = _points(first), _points(second)
    chosen = schedule or next(
        (name for name, verdict in known.items() if now.get(name, verdict) != verdict), ""
    )
    gone = [change for change in changes if not change.after]
    differences = Differences(
        before=before,
        after=after,
        fixed=tuple(change for change in gone if change.went),
        untried=tuple(change for change in gone if not change.went),
        new=tuple(change for change in changes if not change.before),
        remaining=tuple(change for change in changes if change.before and change.after),
        came=tuple(name for name in new_points if name not in old_points),
        went=tuple(name for name in old_points if name not in new_points),
        parting=_parting(first, second, chosen, (known[chosen], now[chosen])) if chosen else None,
        notes=tuple(_notes(before, after)),
    )
    return cleaned(differences)


def _verdicts(store: Store) -> dict[str, str]:
    return {trial.schedule: trial.judgement.verdict for trial in store.trials()}


def _flaws(store: Store) -> dict[Flaw, dict[str, None]]:
    """The schedules that show each flaw, in their order."""
    found: dict[Flaw, dict[str, None]] = {}
    for trial in store.trials():
        for finding in trial.judgement.roots:
            found.setdefault(flaw_of(finding), {})[trial.schedule] = None
    return found


def _changes(
    old: Mapping[Flaw, Mapping[str, None]],
    new: Mapping[Flaw, Mapping[str, None]],
    tried_before: Collection[str],
    tried_now: Collection[str],
) -> list[Change]:
    return [
        Change(
            flaw,
            before=tuple(showed := old.get(flaw, {})),
            after=tuple(shows := new.get(flaw, {})),
            came=tuple(s for s in shows if s not in showed and s in tried_before),
            went=tuple(s for s in showed if s not in shows and s in tried_now),
        )
        for flaw in dict.fromkeys((*old, *new))
    ]


def _points(store: Store) -> dict[str, None]:
    survey = store.survey()
    if survey is None:
        return {}
    options = msgspec.json.decode(store.get("options") or "", type=Options)
    return dict.fromkeys(map(str, points(survey[0], options.mechanisms)))


def _notes(before: Summary, after: Summary) -> list[str]:
    found = []
    for name, one, other in (
        ("scenario", before.scenario, after.scenario),
        ("seed", str(before.seed), str(after.seed)),
        ("mechanisms", ", ".join(before.mechanisms), ", ".join(after.mechanisms)),
        ("version of chaoskit", before.chaoskit, after.chaoskit),
    ):
        if one != other:
            found.append(f"another {name}: {one} before, {other} now")
    return found


def _parting(first: Store, second: Store, schedule: str, verdicts: tuple[str, str]) -> Parting:
    old, new = first.history(schedule), second.history(schedule)
    traced = all(any(True for _ in history.of(CallSeen)) for history in (old, new))
    one, other = _steady(old, first, traced=traced), _steady(new, second, traced=traced)
    number = next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a[1] != b[1]),
        min(len(one), len(other)) if len(one) != len(other) else None,
    )
    if number is None:
        return Parting(schedule, verdicts)
    return Parting(
        schedule,
        verdicts,
        number,
        _line(new, other[number - 1][0]) if number else None,
        _line(old, one[number][0]) if number < len(one) else None,
        _line(new, other[number][0]) if number < len(other) else None,
    )


def _line(history: History, index: int) -> Line:
    return next(iter(told(history, frozenset({index}))))


def _steady(history: History, store: Store, *, traced: bool) -> Sequence[tuple[int, Any]]:
    """The events with their indexes, without what differs from one run to the next anyway."""
    survey = store.survey()
    volatile = survey[2].volatile if survey is not None else {}
    return [
        (event.index, kept)
        for event in history.events
        if (kept := _kept(event.body, volatile, traced=traced)) is not None
    ]


def _kept(body: Body, volatile: Mapping[str, tuple[str, ...]], *, traced: bool) -> Any:
    """``body`` without times and ids; None for what only some ways of running a trial tell."""
    kept: Any = body
    match body:
        case TraceNoted() | Crossed():
            kept = None
        case CallSeen():
            kept = body.call if traced else None
        case RequestReceived():
            wants = _identity(body.wants, volatile)
            kept = (body.attempt, body.service, body.operation, body.ordinal, wants)
        case EffectApplied():
            same = body.effect.operation if body.ignored else _identity(body.effect, volatile)
            kept = (body.attempt, same)
        case ReplySent():
            kept = (body.attempt, body.status, body.deduped, body.delivered)
        case AttemptEnded():
            kept = (body.attempt, body.how, body.code, len(body.leftovers))
    return kept


def _identity(effect: Effect | None, volatile: Mapping[str, tuple[str, ...]]) -> Any:
    return None if effect is None else identity_of(effect, volatile)
