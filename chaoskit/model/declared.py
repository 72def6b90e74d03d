"""Declared effects: what the user says that an undisturbed run does, held against what it does.

    --expect payments.charge=12          so often
    --expect email.send=customers.csv    once for each row, or each object of a JSON list

A row names fields of the effect (``customer``, or the end of a longer name such as
``metadata.customer``), or ``who``, ``what`` and ``key``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec

from chaoskit.model.effects import Effect
from chaoskit.model.errors import UsageError, nearest

SHOWN_MOST = 3

_ITSELF = ("who", "what", "key")


class Declared(msgspec.Struct, frozen=True):
    """Effects of the operations that a pattern names: how many, and what each of them has.

    ``rows`` is empty where only the number is declared. ``origin``: where they stand, for messages.
    """

    operation: str
    count: int
    rows: tuple[dict[str, str], ...] = ()
    origin: str = "expect="


def declared(effects: Mapping[str, object]) -> tuple[Declared, ...]:
    """What a scenario's ``expect=`` says: per operation a number, or a list of mappings.

    Raises:
        UsageError: it says something else.
    """
    return tuple(_declared(operation, wanted) for operation, wanted in effects.items())


def _declared(operation: str, wanted: object) -> Declared:
    if isinstance(wanted, int) and not isinstance(wanted, bool) and wanted >= 0:
        return Declared(operation, wanted)
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        rows = [row for row in wanted if isinstance(row, Mapping) and row]
        if len(rows) == len(wanted):
            texts = tuple({str(k): str(v) for k, v in row.items()} for row in rows)
            return Declared(operation, len(texts), texts)
    raise UsageError(
        f"expect= of {operation} is a number, or a list of mappings from a field's name to its "
        f"value; not {wanted!r:.60}"
    )


def check_fields(wanted: Sequence[Declared], effects: Sequence[Effect]) -> None:
    """See that each field that rows name is one that some effect of their operation has.

    Args:
        wanted: what was declared.
        effects: what an undisturbed run does.

    Raises:
        UsageError: a field is in none of them; the message gives the nearest ones.
    """
    for one in wanted:
        done = _of(one, effects)
        known = {*_ITSELF, *(name for effect in done for name, _ in effect.fields)}
        for name in dict.fromkeys(name for row in one.rows for name in row):
            if done and not any(_means(name, field) for field in known):
                near = ", ".join(nearest(name, known))
                raise UsageError(
                    f"{one.origin}: {one.operation} has no field {name!r}; nearest: {near}. "
                    "Correct the name (in a CSV file: line 1), or the task"
                )


def _of(one: Declared, effects: Sequence[Effect]) -> list[Effect]:
    return [effect for effect in effects if fnmatchcase(effect.operation, one.operation)]


def _means(name: str, field: str) -> bool:
    return field == name or field.endswith(f".{name}")


def differences(wanted: Sequence[Declared], effects: Sequence[Effect]) -> Iterator[str]:
    """What an undisturbed run does otherwise than was declared, a sentence each.

    Args:
        wanted: what was declared.
        effects: what the run does.
    """
    for one in wanted:
        done = _of(one, effects)
        missing, left = _unmatched(one.rows, done) if one.rows else ([], [])
        if len(done) == one.count and not missing:
            continue
        parts = [f"{one.operation} is declared {one.count} times, and an undisturbed run does it "]
        parts.append(f"{len(done)} times{_others(done, effects)}")
        if missing:
            parts.append(f"; declared and not done: {_shown(map(_words, missing))}")
        if left:
            parts.append(f"; done and not declared: {_shown(e.in_words() for e in left)}")
        yield "".join(parts) + ". Correct the declaration, or the task"


def _unmatched(
    rows: Sequence[Mapping[str, str]], done: Sequence[Effect]
) -> tuple[list[Mapping[str, str]], list[Effect]]:
    """The rows for which there is no effect, and the effects for which there is no row. Those that
    say most are given theirs first.
    """
    left, missing = list(done), []
    for row in sorted(rows, key=len, reverse=True):
        found = next((effect for effect in left if _fits(row, effect)), None)
        if found is None:
            missing.append(row)
        else:
            left.remove(found)
    return missing, left


def _fits(row: Mapping[str, str], effect: Effect) -> bool:
    return all(value in _values(name, effect) for name, value in row.items())


def _values(name: str, effect: Effect) -> set[str]:
    values = {value for field, value in effect.fields if _means(name, field)}
    return values | ({str(getattr(effect, name))} if name in _ITSELF else set())


def _others(done: Sequence[Effect], effects: Sequence[Effect]) -> str:
    """Where it does nothing of the kind: what it does."""
    known = sorted({effect.operation for effect in effects})
    return f" (it does {', '.join(known)})" if not done and known else ""


def _words(row: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in row.items())


def _shown(words: Iterator[str] | map[str]) -> str:
    every = list(words)
    more = f" and {len(every) - SHOWN_MOST} more" if len(every) > SHOWN_MOST else ""
    return ", ".join(every[:SHOWN_MOST]) + more
