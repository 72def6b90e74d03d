"""Work on files alone, as system calls show it: outputs are written, and records say how far it is.

What is written to one output until the next record is a step. It is complete once the task has
recorded it and goes on: it begins the next one, or ends by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote

import msgspec

from chaoskit.model.events import AttemptEnded, CallSeen
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


@dataclass(slots=True)
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
    readers: dict[int, _Reader] = {}
    found: list[Piece] = []
    for event in history.events:
        body = event.body
        if isinstance(body, CallSeen):
            reader = readers.setdefault(body.attempt, _Reader(work, body.attempt))
            found += reader.take(body, event.index)
        elif isinstance(body, AttemptEnded) and body.how == "exit" and body.attempt in readers:
            readers[body.attempt].goes_on()
    return found


@dataclass(slots=True)
class _Reader:
    """Reads the calls of one attempt. ``_open`` are the pieces that are not complete."""

    work: FileWork
    attempt: int
    _open: dict[str, Piece] = field(default_factory=dict)

    def take(self, seen: CallSeen, index: int) -> Iterator[Piece]:
        """A call that is about to be made, and the piece that it begins, if any."""
        change = change_of(seen)
        if change is None:
            return
        name, point = change.file, change.call
        output = name in self.work.outputs
        if output or sort_of(name) in self.work.beside:
            self.goes_on()
        if output and point.call in MOVES:
            if name not in self._open:
                self._open[name] = Piece(self.attempt, name, index)
                yield self._open[name]
        elif not output and sort_of(name) in self.work.records and point.call in RECORDS:
            for piece in self._open.values():
                piece.by = str(point)

    def goes_on(self) -> None:
        """Whatever was recorded is complete."""
        for name, piece in list(self._open.items()):
            if piece.by:
                piece.complete = True
                del self._open[name]
