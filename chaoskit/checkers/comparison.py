"""What happened beside what should have: the multiset comparison that several checkers share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from chaoskit.model.effects import Effect, Identity
from chaoskit.model.events import EffectApplied
from chaoskit.model.expectation import Expectation, Freed
from chaoskit.model.history import History

Seen = tuple[int, EffectApplied]
"""An effect with the index of its event."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Each identity with its expected count and what was ``seen`` of it.

    ``extra`` was seen more often than expected, ``missing`` less often; ``strange`` is no effect
    of an undisturbed run at all.
    """

    seen: Mapping[Identity, Sequence[Seen]]
    extra: Sequence[tuple[Identity, int, Sequence[Seen]]]
    missing: Sequence[tuple[Identity, int, Sequence[Seen]]]
    strange: Sequence[tuple[Identity, Sequence[Seen]]]


@lru_cache(maxsize=1)
def compare(history: History, expectation: Expectation) -> Comparison:
    """Compare the effects of ``history`` with the expected multiset.

    The last result is kept, since several checkers ask about the same trial one after the other.
    """
    seen: dict[Identity, list[Seen]] = {}
    for index, body in history.effects:
        if any(one.covers(body.effect) for one in expectation.freed):
            continue  # how often a lock changes is nobody's business
        seen.setdefault(expectation.identify(body.effect), []).append((index, body))
    counts = expectation.counts
    drawn = [i for i in seen if i not in counts and is_drawn(i.operation, expectation)]
    return Comparison(
        seen=seen,
        extra=[(i, counts[i], s) for i, s in seen.items() if 0 < counts[i] < len(s)]
        + [(i, 1, seen[i]) for i in drawn if len(seen[i]) > 1],
        missing=[
            (i, n, seen.get(i, []))
            for i, n in counts.items()
            if len(seen.get(i, [])) < n and not is_drawn(i.operation, expectation)
        ],
        strange=[(i, s) for i, s in seen.items() if i not in counts and i not in drawn],
    )


def is_drawn(operation: str, expectation: Expectation) -> bool:
    """Whether the contract leaves open which effects of an operation there are."""
    rules = expectation.contract.rules
    return bool(rules) and expectation.contract.guarantee(operation) == "never-twice"


def still_taken(history: History, expectation: Expectation) -> list[Seen]:
    """The last change of each row that undisturbed runs take and free again, where the attempt that
    claims success made it and the row is not free after it. What a killed attempt had taken may be
    left to expire.
    """
    if not expectation.freed or not history.completed:
        return []
    last: dict[tuple[str, str], tuple[Freed, Seen]] = {}
    for index, body in history.effects:
        effect = body.effect
        if (
            row := next((one for one in expectation.freed if one.covers(effect)), None)
        ) is not None:
            last[effect.table, effect.ref] = row, (index, body)
    claim = history.claim[1].attempt
    return [
        seen
        for row, seen in last.values()
        if seen[1].attempt == claim and not row.is_free(seen[1].effect)
    ]


def subject(identity: Identity) -> str:
    """A short stable text for an identity, for fingerprints."""
    return "|".join(f"{_plain(name)}={_plain(value)}" for name, value in identity.fields)


def _plain(text: str) -> str:
    """``text`` without the two separators, so that no value can pass for two."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("=", "\\=")


def in_words(identity: Identity, expectation: Expectation) -> str:
    """The expected effect as a report says it."""
    sample = expectation.sample(identity)
    return sample.in_words() if sample is not None else identity.operation


def times(number: int) -> str:
    """``once``, ``twice``, ``3 times``."""
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number} times")


def counted(number: int, noun: str) -> str:
    """``1 trial``, ``12 trials``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def nearest(effect: Effect, candidates: Sequence[Effect]) -> Effect | None:
    """The candidate of the same operation that shares the most fields with ``effect``."""
    same = [other for other in candidates if other.operation == effect.operation]
    fields = set(effect.fields)
    return max(same, key=lambda other: len(fields & set(other.fields)), default=None)


def difference(seen: Effect, expected: Effect) -> str:
    """The fields in which two effects of one operation differ, at most three of them."""
    have, want = dict(seen.fields), dict(expected.fields)
    names = sorted(n for n in have.keys() | want.keys() if have.get(n) != want.get(n))
    parts = [f"{n} is {have.get(n, 'absent')!r}, not {want.get(n, 'absent')!r}" for n in names[:3]]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return "; ".join(parts) + more
