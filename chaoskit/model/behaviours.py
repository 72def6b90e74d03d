"""Behaviours: the ways in which a fake service misbehaves on purpose, as text and as value.

    lose-reply@payments.charge#3          the third charge is applied, its connection is cut
    fail-after-commit@payments.charge#*   every charge is applied and answered with an error
    late-reply:250ms@email.send#*         applied at once, answered 250 ms later
    apply-twice@payments.charge#1         the service itself books the effect twice
    forget-keys@payments.charge#*         idempotency keys are not looked at

Ordinals count a service's requests from 1 since it was last reset, over all attempts of a trial,
so that "the third charge" loses its reply once and not again in each resume.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from chaoskit.model.errors import UsageError, unknown_name
from chaoskit.model.points import COUNT, NAME, ORDINAL, SERVICE

BehaviourKind = Literal[
    "lose-reply", "fail-after-commit", "late-reply", "apply-twice", "forget-keys"
]

KINDS: tuple[BehaviourKind, ...] = get_args(BehaviourKind)

_FORM = re.compile(
    rf"(?P<kind>[a-z-]+)(:(?P<ms>{COUNT})ms)?@(?P<service>{SERVICE})\.(?P<operation>{NAME})"
    rf"#(?P<ordinal>\*|{ORDINAL})"
)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One way to misbehave, for one request of an operation or (``ordinal`` None) for each."""

    kind: BehaviourKind
    service: str
    operation: str
    ordinal: int | None = None
    delay_ms: int = 0

    def __str__(self) -> str:
        delay = f":{self.delay_ms}ms" if self.kind == "late-reply" else ""
        ordinal = "*" if self.ordinal is None else self.ordinal
        return f"{self.kind}{delay}@{self.service}.{self.operation}#{ordinal}"

    def applies(self, service: str, operation: str, ordinal: int) -> bool:
        """Whether the ``ordinal``-th request for ``operation`` is meant."""
        same = self.service == service and self.operation == operation
        return same and self.ordinal in {None, ordinal}


def parse_behaviour(text: str) -> Behaviour:
    """The behaviour that ``text`` names; the inverse of ``str(behaviour)``.

    Raises:
        UsageError: the text has another form, or names an unknown kind, or a delay is missing.
    """
    found = _FORM.fullmatch(text)
    if not found:
        raise UsageError(
            f"not a behaviour: {text!r}; write lose-reply@payments.charge#3 "
            "or late-reply:250ms@email.send#*"
        )
    kind = next((known for known in KINDS if known == found["kind"]), None)
    if kind is None:
        raise unknown_name("behaviour", found["kind"], KINDS)
    if (kind == "late-reply") != (found["ms"] is not None):
        raise UsageError(f"{text!r}: late-reply takes a delay, as in late-reply:250ms@…")
    ordinal = None if found["ordinal"] == "*" else int(found["ordinal"])
    return Behaviour(kind, found["service"], found["operation"], ordinal, int(found["ms"] or 0))
