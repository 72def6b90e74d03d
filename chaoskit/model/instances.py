"""Instances: a service under a name of its own, so that a run may have two of one kind.

payments             the service payments, named payments
payments:eu          another one, named eu: {eu.url}, eu.charge, lose-reply@eu.charge#3
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from chaoskit.model.errors import UsageError

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Instance:
    """A service of a run: its ``kind`` says what it is, its ``name`` how everything calls it."""

    kind: str
    name: str


def parse_instance(text: str) -> Instance:
    """The instance that ``SERVICE`` or ``SERVICE:NAME`` names.

    Raises:
        UsageError: NAME is not made of letters, digits and _.
    """
    kind, colon, name = text.partition(":")
    if not colon:
        return Instance(text, text)
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{text!r}: the name of an instance has letters, digits and _, and does not begin "
            f"with a digit; write {kind}:eu"
        )
    return Instance(kind, name)


def spread(pattern: str, instances: Iterable[Instance]) -> tuple[str, ...]:
    """A pattern of operations, for each instance of the kind that it names.

    Args:
        pattern: as in ``payments.charge`` or ``payments.*``; or a kind alone.
        instances: those of the run.

    Returns:
        ``eu.charge`` and ``us.charge``; the pattern alone where it names no kind of the run.
    """
    kind, dot, rest = pattern.partition(".")
    names = [one.name for one in instances if one.kind == kind]
    return tuple(f"{name}{dot}{rest}" for name in names) or (pattern,)


def spread_all(patterns: Iterable[str], instances: Iterable[Instance]) -> tuple[str, ...]:
    """Several patterns, each as `spread` says, in their order."""
    known = tuple(instances)
    return tuple(dict.fromkeys(one for pattern in patterns for one in spread(pattern, known)))


def spread_keys(rules: Mapping[str, T], instances: Iterable[Instance]) -> dict[str, T]:
    """Values by pattern, in their order; one that names an instance goes before its kind's."""
    known = tuple(instances)
    made = {one: value for pattern, value in rules.items() for one in spread(pattern, known)}
    return made | {pattern: value for pattern, value in rules.items() if pattern in made}
