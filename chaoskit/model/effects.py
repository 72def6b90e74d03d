"""Effects, and when two of them are the same one.

An effect is what a request changed in the world: a charge, a mail, a row. Two effects are the
same business fact when their service, kind and fields agree, once the fields that differ from
one undisturbed run to the next (times, random ids) are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from chaoskit.model.secrets import BLOT, is_secret_name, without_secrets

Fields = tuple[tuple[str, str], ...]
"""Named values, sorted by name; nested ones have dotted names (``metadata.order``)."""


class Effect(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One change in a service's world, in words that its ledger and the report both use.

    ``fields`` are what the caller asked for; ``ref`` is the service's own id for the result and
    ``key`` the idempotency key that came along; neither of the two is part of the identity.
    ``who`` names the person or thing concerned, ``what`` the deed ("charge of 42.00 EUR").
    """

    service: str
    kind: str
    fields: Fields
    who: str = ""
    what: str = ""
    key: str | None = None
    ref: str = ""

    @property
    def operation(self) -> str:
        """``service.kind``: the name that contracts and points use."""
        return f"{self.service}.{self.kind}"

    @property
    def table(self) -> str:
        """Of a database's row its table; empty for what has none."""
        return self.kind.rpartition(".")[0]

    @property
    def verb(self) -> str:
        """The last part of the kind: of a database's row ``insert``, ``update`` or ``delete``."""
        return self.kind.rpartition(".")[2]

    def in_words(self) -> str:
        """The effect as a report says it."""
        deed = self.what or self.operation
        return f"{deed} to {self.who}" if self.who else deed


class Identity(msgspec.Struct, frozen=True, order=True, gc=False):
    """What makes an effect the same business fact as another."""

    service: str
    kind: str
    fields: Fields

    @property
    def operation(self) -> str:
        """``service.kind``."""
        return f"{self.service}.{self.kind}"


def flatten(values: Mapping[str, object], prefix: str = "") -> Fields:
    """Nested mappings and sequences as sorted ``(dotted name, text)`` pairs, without secrets.

    Args:
        values: any JSON-like mapping.
        prefix: put before every name.
    """
    pairs: list[tuple[str, str]] = []
    for name, value in values.items():
        pairs.extend(_flat(f"{prefix}{name}", value))
    return tuple(sorted(pairs))


def _flat(name: str, value: object) -> list[tuple[str, str]]:
    if isinstance(value, str):
        return [(name, BLOT if is_secret_name(name) else without_secrets(value))]
    if isinstance(value, Mapping):
        return list(flatten(value, f"{name}."))
    if isinstance(value, (list, tuple)):
        return [pair for i, item in enumerate(value) for pair in _flat(f"{name}.{i}", item)]
    if value is not None and is_secret_name(name):
        return [(name, BLOT)]
    return [(name, "" if value is None else str(value))]


def identity_of(
    effect: Effect,
    volatile: Mapping[str, Collection[str]],
    chosen: Mapping[str, Collection[str]] | None = None,
) -> Identity:
    """The identity of ``effect``.

    Args:
        effect: the effect as booked.
        volatile: per operation (``payments.charge``), the fields to leave out.
        chosen: per operation, the only fields to keep, where the scenario names its own identity.
    """
    keep = (chosen or {}).get(effect.operation)
    drop = volatile.get(effect.operation, ())
    if keep is None and not drop:
        return Identity(effect.service, effect.kind, effect.fields)
    return Identity(
        effect.service,
        effect.kind,
        tuple(
            (name, value)
            for name, value in effect.fields
            if (name in keep if keep is not None else name not in drop)
        ),
    )
