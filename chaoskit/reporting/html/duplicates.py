"""The table of duplicate effects: who got what too often, over all trials of a campaign."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from chaoskit.model.effects import Fields, Identity
from chaoskit.model.expectation import Expectation
from chaoskit.model.secrets import BLOT, is_secret_name
from chaoskit.reporting.clean import plain
from chaoskit.reporting.html import money
from chaoskit.reporting.html.repeats import Extra

TRIALS_MOST = 50
"""So many trials are listed for one effect; the rest is counted."""

FIELD_MOST = 60
"""So many characters of a field are shown in a cell; how many there were is then said."""


class Duplicate(msgspec.Struct, frozen=True):
    """One business fact that happened too often in some trial.

    ``identity`` is all fields that make it one, ``which`` those of them that tell it from the other
    expected effects of its operation. ``expected`` and ``seen`` count how often; ``seen``,
    ``attempts`` and ``keys`` are those of the worst trial, which ``trials`` begins with. ``amount``
    is what one of them moves. ``allowed``: the contract says at least once. ``number`` counts the
    trials.
    """

    operation: str
    who: str
    what: str
    which: str
    identity: str
    amount: str
    expected: int
    seen: int
    attempts: str
    keys: str
    allowed: bool
    number: int
    trials: tuple[int, ...]


@dataclass(slots=True)
class _Found:
    worst: Extra
    trials: list[tuple[int, int]] = field(default_factory=list)


def duplicates(
    extras: Iterable[tuple[int, Extra]], expectation: Expectation
) -> tuple[Duplicate, ...]:
    """The rows, those first that are in the most trials.

    Args:
        extras: each with the number of its trial.
        expectation: of the campaign.
    """
    found: dict[Identity, _Found] = {}
    for trial, extra in extras:
        entry = found.setdefault(extra.identity, _Found(extra))
        entry.trials.append((extra.surplus, trial))
        if extra.surplus > entry.worst.surplus:
            entry.worst = extra
    order = {identity: at for at, identity in reversed(list(enumerate(expectation.order)))}
    ranked = sorted(found.items(), key=lambda pair: (-len(pair[1].trials), order.get(pair[0], 0)))
    return tuple(_row(identity, entry, expectation) for identity, entry in ranked)


def _row(identity: Identity, entry: _Found, expectation: Expectation) -> Duplicate:
    extra = entry.worst
    effect = extra.effect
    amount = money.amount_of(effect)
    trials = sorted(entry.trials, key=lambda pair: (-pair[0], pair[1]))
    return Duplicate(
        operation=plain(identity.operation),
        who=plain(effect.who, FIELD_MOST),
        what=plain(effect.what or effect.operation, FIELD_MOST),
        which=_fields(_telling(identity, effect.who, expectation)),
        identity=_fields(identity.fields),
        amount=money.in_words({amount[0]: amount[1]}) if amount else "",
        expected=extra.expected,
        seen=len(extra.seen),
        attempts=", ".join(str(body.attempt) for _, body in extra.seen),
        keys=_keys(extra),
        allowed=expectation.contract.guarantee(identity.operation) == "at-least-once",
        number=len(trials),
        trials=tuple(trial for _, trial in trials[:TRIALS_MOST]),
    )


def _telling(identity: Identity, who: str, expectation: Expectation) -> Fields:
    """The fields with a value that not every expected effect of the operation has.

    The amount and who it is have columns of their own; they are left out where others tell enough.
    """
    same = [other for other in expectation.counts if other.operation == identity.operation]
    common = set(identity.fields).intersection(*(other.fields for other in same))
    own = tuple(pair for pair in identity.fields if pair not in common) or identity.fields
    return tuple(pair for pair in own if pair[0] != "amount" and pair[1] != who) or own


def _fields(fields: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{plain(name, FIELD_MOST)}={_shown(name, value)}" for name, value in fields)


def _shown(name: str, value: str) -> str:
    return BLOT if is_secret_name(name) else plain(value, FIELD_MOST)


def _keys(extra: Extra) -> str:
    keys = [plain(body.effect.key or "", FIELD_MOST) for _, body in extra.seen]
    if not any(keys):
        return "none"
    if len(set(keys)) == 1:
        return f"the same: {keys[0]}"
    return ", ".join(key or "none" for key in keys)
