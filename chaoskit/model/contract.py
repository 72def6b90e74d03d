"""The contract: how often each effect may happen, as the scenario declares it.

payments.charge=exactly-once      (the default for everything)
email.send=at-least-once
database.*=at-most-once
database.trials.*=never-twice     (a search: none twice that an undisturbed run has once; others are
                                  as good, and there are not fewer of them altogether)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, get_args

from chaoskit.model.errors import UsageError, unknown_name

Guarantee = Literal["exactly-once", "at-least-once", "at-most-once", "never-twice"]

GUARANTEES: tuple[Guarantee, ...] = get_args(Guarantee)


def parse_guarantee(text: str) -> Guarantee:
    """The guarantee that ``text`` names.

    Raises:
        UsageError: there is no such guarantee.
    """
    for known in GUARANTEES:
        if known == text:
            return known
    raise unknown_name("guarantee", text, GUARANTEES)


@dataclass(frozen=True, slots=True)
class Contract:
    """Rules in order; the first whose pattern matches an operation decides."""

    rules: tuple[tuple[str, Guarantee], ...] = ()

    def guarantee(self, operation: str) -> Guarantee:
        """What is promised for ``operation`` (``service.kind``)."""
        for pattern, guarantee in self.rules:
            if fnmatchcase(operation, pattern):
                return guarantee
        return "exactly-once"

    def __str__(self) -> str:
        return ", ".join(f"{pattern}={guarantee}" for pattern, guarantee in self.rules)

    @classmethod
    def of(cls, rules: Mapping[str, str]) -> Contract:
        """The contract that a mapping of pattern to guarantee declares.

        Raises:
            UsageError: a guarantee is unknown, or the text form could not hold a pattern.
        """
        for pattern in rules:
            if not pattern or pattern != pattern.strip() or set(pattern) & set(",="):
                raise UsageError(f"not a pattern: {pattern!r}; write payments.charge or email.*")
        return cls(tuple((pattern, parse_guarantee(text)) for pattern, text in rules.items()))


def parse_contract(text: str) -> Contract:
    """The contract that ``text`` names; the inverse of ``str(contract)``.

    Raises:
        UsageError: a rule is no ``pattern=guarantee``, or the guarantee is unknown.
    """
    rules: list[tuple[str, Guarantee]] = []
    for piece in filter(None, (part.strip() for part in text.split(","))):
        pattern, equals, guarantee = piece.partition("=")
        if not equals or not pattern:
            raise UsageError(f"not a rule: {piece!r}; write payments.charge=exactly-once")
        rules.append((pattern, parse_guarantee(guarantee)))
    return Contract(tuple(rules))
