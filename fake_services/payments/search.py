"""Stripe's search query language (Stripe docs, Search, Search query language).

A query is clauses such as ``metadata['order']:'17'``, ``amount>100`` or ``-status:'failed'``, next
to each other or joined by AND (all must hold) or by OR (one must); the two cannot be mixed and
there are no parentheses. ``:`` is equality, upper and lower case being the same; ``~`` finds a part
of a text; ``null`` stands for absence.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from fake_services.payments.errors import RefusedError, invalid
from fake_services.payments.objects import Thing

Kind: TypeAlias = Literal["number", "token", "text"]
"""What can be asked: a ``number`` compares, a ``token`` is equal, a ``text`` may also contain."""

PART_CHARS_MIN = 3
"""Shorter parts are refused by Stripe (same page, Substring matching)."""

FIELDS: Mapping[str, Mapping[str, Kind]] = {
    "charges": {
        "amount": "number",
        "created": "number",
        "currency": "token",
        "customer": "token",
        "disputed": "token",
        "payment_method_details.card.brand": "token",
        "payment_method_details.card.exp_month": "number",
        "payment_method_details.card.exp_year": "number",
        "payment_method_details.card.fingerprint": "token",
        "payment_method_details.card.last4": "token",
        "refunded": "token",
        "status": "token",
    },
    "payment_intents": {
        "amount": "number",
        "created": "number",
        "currency": "token",
        "customer": "token",
        "status": "token",
    },
    "customers": {"created": "number", "email": "text", "name": "text", "phone": "text"},
}
"""Stripe's query fields per resource; each has ``metadata`` too."""

_CLAUSE = re.compile(
    r"""(?P<minus>-)?
    (?: metadata\[ (?P<quote>["']) (?P<key>(?:\\.|(?!(?P=quote))[^\\])*) (?P=quote) \]
      | (?P<field>[a-z_][a-z0-9_.]*) )
    \s* (?P<op>:|~|>=|<=|>|<|=) \s*
    (?: (?P<q>["']) (?P<text>(?:\\.|(?!(?P=q))[^\\])*) (?P=q) | (?P<bare>[^\s'"]+) )
    """,
    re.VERBOSE | re.DOTALL,
)
_JOINT = re.compile(r"\s+(?:(?P<word>and|or)\s+)?", re.IGNORECASE)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_INTEGER = re.compile(r"-?[0-9]{1,18}")

_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    ":": operator.eq,
    "=": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One condition. ``value`` None stands for ``null``; ``metadata`` says where ``field`` is."""

    field: str
    op: str
    value: str | None
    negated: bool = False
    metadata: bool = False

    def holds(self, thing: Thing) -> bool:
        """Whether ``thing`` fulfils it."""
        return self._found(thing) != self.negated

    def _found(self, thing: Thing) -> bool:
        actual = thing.metadata.get(self.field) if self.metadata else _member(thing, self.field)
        if actual is None or self.value is None:
            return actual is None and self.value is None
        if isinstance(actual, int) and not isinstance(actual, bool):
            return _COMPARISONS[self.op](actual, int(self.value))
        text = str(actual).casefold()
        wanted = self.value.casefold()
        return wanted in text if self.op == "~" else wanted == text


@dataclass(frozen=True, slots=True)
class Query:
    """Clauses, of which all or (``any_of``) at least one must hold."""

    clauses: tuple[Clause, ...]
    any_of: bool = False

    def matches(self, thing: Thing) -> bool:
        """Whether ``thing`` is found."""
        found = (clause.holds(thing) for clause in self.clauses)
        return any(found) if self.any_of else all(found)

    def decisive_metadata(self) -> tuple[str, str] | None:
        """A name and value that every thing found must have as metadata, for a look-up."""
        if self.any_of and len(self.clauses) > 1:
            return None
        for clause in self.clauses:
            exact = clause.op == ":" and not clause.negated
            if clause.metadata and exact and clause.value is not None:
                return clause.field, clause.value
        return None


def parse_query(text: str, resource: str) -> Query:
    """The query that ``text`` is.

    Args:
        text: as the client sent it.
        resource: ``charges``, ``payment_intents`` or ``customers``.

    Raises:
        RefusedError: the text is no query, or names a field that cannot be searched so.
    """
    clauses: list[Clause] = []
    words: set[str] = set()
    for found, word in _split(text.strip()):
        clauses.append(_clause(found, resource))
        words.add(word)
    if {"and", "or"} <= words:
        raise invalid("A search query cannot combine AND and OR.", param="query")
    return Query(tuple(clauses), any_of="or" in words)


def _split(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Each clause with the word that joins it to the next one."""
    at = 0
    while True:
        found = _CLAUSE.match(text, at)
        if found is None:
            raise _unreadable()
        at = found.end()
        joint = _JOINT.match(text, at)
        if joint is None:
            yield found, ""
            break
        yield found, (joint["word"] or "and").lower()
        at = joint.end()
    if at != len(text):
        raise _unreadable()


def _clause(found: re.Match[str], resource: str) -> Clause:
    metadata = found["field"] is None
    field = _plain(found["key"]) if metadata else found["field"]
    kind = "text" if metadata else FIELDS[resource].get(field)
    if kind is None:
        raise invalid(
            f"Field `{field}` is an unsupported search field for resource `{resource}`. See "
            f"http://stripe.com/docs/search#query-fields-for-{resource.replace('_', '-')} for a "
            "list of supported fields.",
            param="query",
        )
    op, value = found["op"], _plain(found["text"]) if found["bare"] is None else found["bare"]
    absent = found["bare"] is not None and value.lower() == "null"
    _check(field, kind, op, None if absent else value)
    return Clause(
        field=field,
        op=op,
        value=None if absent else value,
        negated=found["minus"] is not None,
        metadata=metadata,
    )


def _check(field: str, kind: Kind, op: str, value: str | None) -> None:
    allowed = _COMPARISONS if kind == "number" else ":" if kind == "token" else ":~"
    if op not in allowed or (value is None and op != ":"):
        raise invalid(f"Operator `{op}` cannot be used on field `{field}` so.", param="query")
    if kind == "number" and value is not None and not _INTEGER.fullmatch(value):
        raise invalid(f"Field `{field}` takes a number, not `{value}`.", param="query")
    if op == "~" and len(value or "") < PART_CHARS_MIN:
        raise invalid(
            f"Substring search on `{field}` takes at least {PART_CHARS_MIN} characters.",
            param="query",
        )


def _member(thing: Thing, path: str) -> str | int | bool | None:
    """The member that a dotted path of `FIELDS` names."""
    value: object = thing
    for name in path.split("."):
        value = getattr(value, name)
    return value if isinstance(value, str | int) else None


def _plain(quoted: str) -> str:
    return _ESCAPED.sub(r"\1", quoted) if "\\" in quoted else quoted


def _unreadable() -> RefusedError:
    return invalid(
        "We were unable to parse your search query. Try using the format "
        '`metadata["key"]:"value"` to query for metadata or key:"value" to query for other '
        "fields.",
        param="query",
    )
