"""Rows that an undisturbed run takes and frees again (a lock, a lease, a heartbeat): no effect that
may happen once. They are known by their undoing: the same row is inserted and deleted again, or a
column of it goes from one value to others and back.

Only rows of a database: a refund is an effect of its own, and a charge is none the less one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from chaoskit.model.effects import Effect
from chaoskit.model.expectation import Freed
from chaoskit.model.history import History

SERVICE = "database"

Row = tuple[str, str]
"""A table, and a row's primary key."""


def freed_rows(runs: Sequence[History], judged: Iterable[str] = ()) -> tuple[Freed, ...]:
    """The rows that each of ``runs`` takes and frees again.

    Args:
        runs: undisturbed ones.
        judged: patterns of operations of which somebody said what is expected.
    """
    rows = [_rows(run, tuple(judged)) for run in runs]
    tables = {table for table, _ in rows[0]}
    whole = [
        Freed(table=table)
        for table in sorted(tables)
        if all(_inserts_and_deletes_only(table, found) for found in rows)
    ]
    known = {one.table for one in whole}
    common = set(rows[0]).intersection(*rows[1:]) if len(rows) > 1 else set()
    back = [
        Freed(table=table, ref=ref, back=columns)
        for table, ref in sorted(common)
        if table not in known and (columns := _returning([found[table, ref] for found in rows]))
    ]
    return (*whole, *back)


def without(run: History, freed: Sequence[Freed]) -> History:
    """``run`` without what it did to these rows."""
    if not freed:
        return run
    gone = {at for at, body in run.effects if any(one.covers(body.effect) for one in freed)}
    return History(tuple(event for event in run.events if event.index not in gone))


def _rows(run: History, judged: Collection[str]) -> dict[Row, list[Effect]]:
    found: dict[Row, list[Effect]] = {}
    for _, body in run.effects:
        effect = body.effect
        if effect.service == SERVICE and not any(fnmatchcase(effect.operation, p) for p in judged):
            found.setdefault((effect.table, effect.ref), []).append(effect)
    return found


def _inserts_and_deletes_only(table: str, found: Mapping[Row, Sequence[Effect]]) -> bool:
    """Whether every row of a table that a run changes was inserted before, and is deleted after."""
    mine = [(ref, effects) for (name, ref), effects in found.items() if name == table]
    return bool(mine) and all(
        ref != "" and effects[0].verb == "insert" and effects[-1].verb == "delete"
        for ref, effects in mine
    )


def _returning(runs: Sequence[Sequence[Effect]]) -> tuple[tuple[str, str], ...]:
    """The columns of a row that go to another value and back, with that value; none where a column
    of it stays changed that is alike in all runs.
    """
    ends = []
    for effects in runs:
        if len(effects) < 2 or any(effect.verb != "update" for effect in effects):
            return ()
        ends.append((_first_values(effects), dict(effects[-1].fields)))
    changed = {name for first, _ in ends for name in first}
    values = {name: {(first.get(name), last.get(name)) for first, last in ends} for name in changed}
    back = {n for n, seen in values.items() if len(seen) == 1 and all(a == b for a, b in seen)}
    varying = {n for n, seen in values.items() if len({last for _, last in seen}) == len(runs)}
    if changed - back - varying:
        return ()
    last = ends[0][1]
    return tuple((name, last[name]) for name in sorted(back) if name in last)


def _first_values(effects: Sequence[Effect]) -> dict[str, str]:
    """What each changed column was before the first change of it."""
    found: dict[str, str] = {}
    for effect in effects:
        for name, value in effect.fields:
            if name.startswith("was."):
                found.setdefault(name.removeprefix("was."), value)
    return found
