"""Behaviours: the ways in which a fake service misbehaves on purpose, as text and as value.

    lose-reply@payments.charge#3          the third charge is applied, its connection is cut
    fail-after-commit@payments.charge#*   every charge is applied and answered with an error
    late-reply:250ms@email.send#*         applied at once, answered 250 ms later
    apply-twice@payments.charge#1         the service itself books the effect twice
    forget-keys@payments.charge#*         idempotency keys are not looked at
    commit-late:2@payments.charge#3       cut unanswered, and applied after two further requests
    commit-late:end@payments.charge#3     cut unanswered, and applied when the trial ends
    reject:429@payments.charge#3          refused with this status, nothing is applied
    down:4@payments.*#7                   from its seventh request on, it refuses four requests
    down:end@payments.*#1                 it refuses every request
    lag:2@payments.*.search#*             what the last two requests applied is not found yet
    fence@payments.*#*                    a request with an older fencing token is refused

One grammar: ``KIND[:ARGUMENT]@SERVICE.OPERATION#ORDINAL``. In OPERATION a ``*`` stands for any
text. Ordinals count the requests that OPERATION covers, from 1 since the service was last reset,
over all attempts of a trial, so that "the third charge" loses its reply once and not again in each
resume; ``*`` means each of them. What a behaviour makes a service refuse is counted as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from chaoskit.model.errors import UsageError, unknown_name
from chaoskit.model.points import COUNT, ORDINAL, SERVICE

BehaviourKind = Literal[
    "lose-reply",
    "fail-after-commit",
    "late-reply",
    "apply-twice",
    "forget-keys",
    "commit-late",
    "reject",
    "down",
    "lag",
    "fence",
]

KINDS: tuple[BehaviourKind, ...] = get_args(BehaviourKind)

_END = "end"

_ARGUMENTS: dict[BehaviourKind, tuple[re.Pattern[str], str]] = {
    "late-reply": (re.compile(rf"(?P<amount>{COUNT})ms"), "a delay, as in late-reply:250ms@…"),
    "commit-late": (
        re.compile(rf"(?P<amount>{ORDINAL})|{_END}"),
        "a number of requests or end, as in commit-late:2@… or commit-late:end@…",
    ),
    "down": (
        re.compile(rf"(?P<amount>{ORDINAL})|{_END}"),
        "a number of requests or end, as in down:4@… or down:end@…",
    ),
    "lag": (re.compile(rf"(?P<amount>{ORDINAL})"), "a number of requests, as in lag:2@…"),
    "reject": (re.compile(r"(?P<amount>[45][0-9]{2})"), "a status from 400 to 599: reject:429@…"),
}
"""What stands after the colon, for the kinds that have one, and how a refusal says so."""

_FORM = re.compile(
    rf"(?P<kind>[a-z-]+)(:(?P<argument>[a-z0-9]+))?@(?P<service>{SERVICE})"
    rf"\.(?P<operation>[A-Za-z0-9_*][A-Za-z0-9_*./:\-]*)#(?P<ordinal>\*|{ORDINAL})"
)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One way to misbehave, for one request of an operation or (``ordinal`` None) for each.

    ``operation`` is a name in which ``*`` stands for any text. ``amount`` belongs to the kind:
    milliseconds of a late reply, requests of ``commit-late``, ``down`` (None: until the trial
    ends) and ``lag``, the status of ``reject``; 0 for the others.
    """

    kind: BehaviourKind
    service: str
    operation: str
    ordinal: int | None = None
    amount: int | None = 0

    def __str__(self) -> str:
        ordinal = "*" if self.ordinal is None else self.ordinal
        return f"{self.kind}{self._argument()}@{self.service}.{self.operation}#{ordinal}"

    def _argument(self) -> str:
        if self.kind not in _ARGUMENTS:
            return ""
        if self.amount is None:
            return f":{_END}"
        return f":{self.amount}ms" if self.kind == "late-reply" else f":{self.amount}"

    def covers(self, operation: str) -> bool:
        """Whether requests for ``operation`` are meant, and counted by the ordinal."""
        return _pattern(self.operation).fullmatch(operation) is not None

    def applies(self, service: str, operation: str, ordinal: int) -> bool:
        """Whether a request for ``operation`` is meant, the ``ordinal``-th that is covered."""
        same = self.service == service and self.covers(operation)
        return same and self.ordinal in {None, ordinal}


@lru_cache(maxsize=1024)
def _pattern(operation: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, operation.split("*"))))


def parse_behaviour(text: str) -> Behaviour:
    """The behaviour that ``text`` names; the inverse of ``str(behaviour)``.

    Raises:
        UsageError: the text has another form, or names an unknown kind, or its argument is
            missing or not one of that kind.
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
    ordinal = None if found["ordinal"] == "*" else int(found["ordinal"])
    amount = _amount(text, kind, found["argument"])
    return Behaviour(kind, found["service"], found["operation"], ordinal, amount)


def _amount(text: str, kind: BehaviourKind, argument: str | None) -> int | None:
    if kind not in _ARGUMENTS:
        if argument is not None:
            raise UsageError(f"{text!r}: {kind} takes no argument; write {kind}@…")
        return 0
    form, words = _ARGUMENTS[kind]
    found = form.fullmatch(argument or "")
    if found is None:
        raise UsageError(f"{text!r}: {kind} takes {words}")
    return None if found["amount"] is None else int(found["amount"])
