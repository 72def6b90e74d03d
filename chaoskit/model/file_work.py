"""Work on files alone, as system calls show it: outputs are written, and records say how far it is.

What is written to one output until the next record is a step. It is complete once the task has
recorded it and goes on: it begins the next one, or ends by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import msgspec

from chaoskit.model.events import CallSeen
from chaoskit.model.history import History
from chaoskit.model.points import CallPoint, parse_point

MOVES = frozenset(
    {
        *("write", "pwrite", "writev", "pwritev", "sendfile", "splice", "copy_file_range"),
        *("rename", "link", "symlink"),
    }
)
"""Calls that put something into a file, or into its place."""

RECORDS = MOVES | {"open", "unlink", "truncate", "ftruncate"}
"""Calls that can record something: an empty file may, and so may one that is gone."""


class FileWork(msgspec.Struct, frozen=True):
    """What the files of a task are for.

    ``outputs``: names, as points have them. ``beside``: sorts of file that become outputs by a
    rename. ``records``: sorts of file that record how far the task is. See `sort_of`. ``steps``:
    the outputs that an undisturbed run writes to, in order, each as often as it begins to.
    """

    outputs: tuple[str, ...]
    beside: tuple[str, ...]
    records: tuple[str, ...]
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """What an attempt writes to one output until the next record.

    ``index``: of its first call. ``by``: the last call that records it. ``complete``: the task has
    gone on since.
    """

    attempt: int
    output: str
    index: int
    by: str = ""
    complete: bool = False


def sort_of(name: str) -> str:
    """A file's name without its numbers: a marker for each step is one sort of file."""
    return re.sub(r"[0-9]+", "#", name)


@dataclass(frozen=True, slots=True)
class Change:
    """A call that changes ``file``. ``source``: what is put in its place by it; empty: nothing."""

    file: str
    source: str
    call: CallPoint


def change_of(seen: CallSeen) -> Change | None:
    """What a call changes; None for what is no file of the task's own."""
    point = parse_point(seen.call)
    assert isinstance(point, CallPoint)
    if seen.sends or ":" in point.target:
        return None
    source, arrow, target = map(unquote, point.target.partition("->"))
    return Change(target, source, point) if arrow else Change(source, "", point)


def pieces_of(history: History, work: FileWork) -> list[Piece]:
    """The steps that each attempt began, in the order in which it did."""
    calls: dict[int, list[tuple[int, Change]]] = {}
    for index, seen in history.of(CallSeen):
        if (change := change_of(seen)) is not None:
            calls.setdefault(seen.attempt, []).append((index, change))
    ended = {body.attempt for _, body in history.attempts if body.how == "exit"}
    found = [
        piece
        for attempt, changes in calls.items()
        for piece in _of_attempt(attempt, changes, work, ended=attempt in ended)
    ]
    return sorted(found, key=lambda piece: piece.index)


def _of_attempt(
    attempt: int, changes: Sequence[tuple[int, Change]], work: FileWork, *, ended: bool
) -> Iterator[Piece]:
    """The steps of one attempt, the complete ones first. A call is told of before it is made: that
    it was, the next one shows.
    """
    begun: dict[str, tuple[int, str]] = {}
    for index, change in changes:
        output, call = change.file in work.outputs, change.call
        if output or sort_of(change.file) in work.beside:
            recorded = [name for name, (_, by) in begun.items() if by]
            for name in recorded:
                yield Piece(attempt, name, *begun.pop(name), complete=True)
        if output and call.call in MOVES:
            begun.setdefault(change.file, (index, ""))
        elif not output and sort_of(change.file) in work.records and call.call in RECORDS:
            begun = {name: (first, str(call)) for name, (first, _) in begun.items()}
    for name, (index, by) in begun.items():
        yield Piece(attempt, name, index, by, complete=ended and bool(by))
