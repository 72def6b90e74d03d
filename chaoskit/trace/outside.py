"""Which files outside the work folder a task has changed: what is not restored, and so limits a
claim. Only a call that succeeded counts, and only what it left.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from chaoskit.trace import ptrace
from chaoskit.trace.abi import ABIS, SYNCS, Kind
from chaoskit.trace.ptrace import Entered

_NO_FILES = ("/dev/", "/proc/", "/sys/", "/memfd:")
_MEMORY, _SEMAPHORES = "/dev/shm/", "/dev/shm/sem."  # noqa: S108 - questions, not files
"""Files in shared memory outlive a process; a named semaphore's is made and unlinked at once."""

_CREAT = ABIS["x86_64"].numbers["creat"]
"""It has no flags. aarch64 has neither this one nor another one that opens by a mere path."""

_O_TRUNC, _O_TMPFILE, _PROT_WRITE = 0o1000, 0o20000000, 2

Settle = Callable[[int], None]
"""Takes what the call returned."""


class Outside:
    """Follows changes elsewhere. ``quiet`` are folders whose files say nothing.

    A file that is made and removed before the next call that counts was never there for a resume:
    wherever a kill lands, it finds none.
    """

    def __init__(self, quiet: Sequence[str]) -> None:
        self._quiet = tuple(quiet)
        self._found: set[str] = set()
        self._fresh: set[str] = set()

    @property
    def paths(self) -> set[str]:
        """What was changed, as far as it was left."""
        return self._found | self._fresh

    def moved_on(self) -> None:
        """A call that counts is about to be made: what was made until now is there at its point."""
        self._found |= self._fresh
        self._fresh.clear()

    def moved(self, kind: Kind, paths: Sequence[str], elsewhere: Sequence[str]) -> None:
        """A call that counts has one of its two files elsewhere: takes it away, or makes it."""
        if elsewhere and os.path.lexists(paths[0]):
            for path in elsewhere:
                if kind.name == "rename" or path == paths[-1]:
                    self.changed(path)

    def changed(self, path: str) -> None:
        """A file is changed in a way that no call tells of."""
        if self._counts(path) and path not in self._fresh:
            self._found.add(path)

    def entering(self, tid: int, kind: Kind, call: Entered, paths: Sequence[str]) -> Settle | None:
        """What is to be done when the call has returned; None where it can change nothing."""
        if kind.name in SYNCS or not any(map(self._counts, paths)):
            return None
        if kind.name == "open" and not _changes(tid, kind, call, paths[0]):
            return None
        if kind.shape == "map" and not call.arguments[2] & _PROT_WRITE:
            return None
        there = [os.path.lexists(path) for path in paths]

        def settle(result: int) -> None:
            if result >= 0 or kind.shape == "map":  # an address may look like an error
                self._settled(kind.name, paths, there)

        return settle

    def _settled(self, name: str, paths: Sequence[str], there: Sequence[bool]) -> None:
        match name:
            case "rename":
                self._gone(paths[0])
                self._made(paths[1], new=not there[1])
            case "unlink" | "rmdir":
                self._gone(paths[0])
            case "open" | "mkdir" | "mknod" | "symlink" | "link" | "bind":
                self._made(paths[-1], new=not there[-1])
            case _:
                for path in paths:
                    self.changed(path)

    def _made(self, path: str, *, new: bool) -> None:
        if new and self._counts(path):
            self._fresh.add(path)
        else:
            self.changed(path)

    def _gone(self, path: str) -> None:
        if path in self._fresh:
            self._fresh.discard(path)
        else:
            self.changed(path)

    def _counts(self, path: str) -> bool:
        return is_state(path, self._quiet)


_CACHES = ("/__pycache__/", "/.cache/pip/", "/.cache/fontconfig/", "/var/cache/")
"""Folders whose files are made anew where they are missing, and are right wherever they are."""


def is_cache(path: str) -> bool:
    """Whether a file is one of a cache: it belongs to the world, and changing it is no point."""
    return any(folder in f"{path}/" for folder in _CACHES)


def is_state(path: str, quiet: Sequence[str]) -> bool:
    """Whether a file outlives its process, and lies in none of the ``quiet`` folders."""
    if path.startswith((*(f"{folder}/" for folder in quiet), _SEMAPHORES)) or is_cache(path):
        return False
    return path.startswith(_MEMORY) or not path.startswith(_NO_FILES)


def _changes(tid: int, kind: Kind, call: Entered, path: str) -> bool:
    """Whether opening makes a file, or empties one that is there."""
    words = call.arguments
    flags = {"path": words[1], "at": words[2]}.get(kind.shape)
    if flags is None:
        flags = int.from_bytes(ptrace.memory(tid, words[2], 8), "little")
    if flags & _O_TMPFILE:
        return False  # it has no name
    try:
        size = os.stat(path).st_size
    except OSError:
        return True
    empties = bool(flags & _O_TRUNC) or (kind.shape == "path" and call.number == _CREAT)
    return bool(size) and empties
