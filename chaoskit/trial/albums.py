"""An album as bytes: recorded by one worker, gone on from by all of them.

Copies of one run differ from those of another in what is drawn at random (the salt of a write-ahead
log), so that workers that look at the same run agree on which states are the same, and each state
is judged once for all of them. A request in flight is part of a running service and stays behind:
who wants it to land late looks for itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from copy import copy
from itertools import count

import msgspec

from chaoskit.model.history import History
from chaoskit.model.schedule import parse_schedule
from chaoskit.trial.horizon import Undisturbed
from chaoskit.trial.snapshots import Album, Contents, Entry, Snapshot, Tree

BYTES_MAX = 64 << 20
"""Contents that are larger than this in sum are not written down: each worker makes its own."""

_Entry = tuple[bytes, int, bytes, int]
"""An entry of a tree. Its name is bytes: that of a file need not be UTF-8."""


class _Shot(msgspec.Struct, array_like=True, frozen=True):
    """A `Snapshot` by the places of its parts in `_Written`."""

    fault: str
    attempt: int
    tree: tuple[int, ...]
    services: tuple[bytes, ...]
    world: bytes
    events: int
    number: int


class _Written(msgspec.Struct, frozen=True):
    """``entries`` are those of all trees, each once; a tree is a list of places in it."""

    history: bytes
    entries: tuple[_Entry, ...]
    contents: dict[bytes, bytes]
    shots: tuple[_Shot, ...]
    moments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    end: tuple[int, ...] | None = None


def written(
    album: Album, history: History, undisturbed: Undisturbed | None, contents: Contents
) -> bytes | None:
    """``album`` as bytes.

    Args:
        album: snapshots of one attempt.
        history: of that attempt's run; every snapshot's events are its beginning.
        undisturbed: what was learnt from the same run, if anything.
        contents: those of the trees.

    Returns:
        None: there is too much of it.
    """
    places: dict[_Entry, int] = {}

    def tree(found: Tree) -> tuple[int, ...]:
        named = ((os.fsencode(n), e.mode, e.content, e.mtime_ns) for n, e in found.items())
        return tuple(places.setdefault(entry, len(places)) for entry in named)

    shots = tuple(
        _Shot(
            str(fault),
            shot.attempt,
            tree(shot.tree),
            shot.services,
            shot.world,
            len(shot.events),
            next(copy(shot.numbers)),
        )
        for fault, shot in album.items()
    )
    moments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    end = None
    if undisturbed is not None and undisturbed.end is not None:
        moments = tuple((m.index, tree(m.tree)) for m in undisturbed.moments)
        end = tree(undisturbed.end)
    needed = {entry[2] for entry in places} | {s for shot in shots for s in shot.services}
    kept = contents.those(needed)
    if sum(map(len, kept.values())) > BYTES_MAX:
        return None
    return msgspec.msgpack.encode(
        _Written(history.encode(), tuple(places), kept, shots, moments, end)
    )


def read(data: bytes, undisturbed: Undisturbed | None, contents: Contents) -> Album:
    """What `written` wrote.

    Args:
        data: the bytes.
        undisturbed: is told what was learnt from the run, if anything.
        contents: keeps those of the trees from now on.
    """
    found = msgspec.msgpack.decode(data, type=_Written)
    for content in found.contents.values():
        contents.keep(content)
    history = History.decode(found.history)
    named = [
        (os.fsdecode(name), Entry(mode, content, at)) for name, mode, content, at in found.entries
    ]

    def tree(places: Iterable[int]) -> Tree:
        return dict(named[place] for place in places)

    if undisturbed is not None and found.end is not None:
        undisturbed.events = history.events
        for index, places in found.moments:
            request = history.events[index].body
            undisturbed.met(request, index, tree(places))  # type: ignore[arg-type]
        undisturbed.end = tree(found.end)
    album: Album = {}
    for shot in found.shots:
        ((fault,),) = parse_schedule(shot.fault).attempts
        album[fault] = Snapshot(
            shot.attempt,
            tree(shot.tree),
            shot.services,
            shot.world,
            history.events[: shot.events],
            count(shot.number),
        )
    return album
