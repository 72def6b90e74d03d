"""Copies of the durable world: the files that a kill leaves behind, and what the services know.

Contents are kept once, by digest, in memory. A file is read again only where it can have changed,
so that a copy at each of a thousand calls costs little.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from chaoskit.model.events import Event
from chaoskit.model.schedule import Fault, kill
from chaoskit.trial.in_flight import LateRequest

BYTES_MAX = 512 << 20
"""A worker keeps no more than this in copies of the world; further points get real kills."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file, folder or link: its mode, and the digest of its content or the link's target."""

    mode: int
    content: bytes = b""
    mtime_ns: int = field(default=0, compare=False)


Tree = Mapping[str, Entry]
"""Every file, folder and link below some folders, by folder's label and relative path."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The durable world at one moment of an attempt, and what had been seen until then.

    ``world`` is equal for equal worlds: all files, and what the services know. ``late`` is a
    request that a service has received here and not applied. ``at_ns`` is the time by the task's
    own clock, but for what faults have advanced it by.
    """

    attempt: int
    tree: Tree
    services: tuple[bytes, ...]
    world: bytes
    events: tuple[Event, ...]
    numbers: count[int]
    late: LateRequest | None = None
    at_ns: int = 0


Album = dict[Fault, Snapshot]
"""The snapshots of one attempt, by the fault that each of them is the world after; see `scene`."""


def scene(fault: Fault) -> Fault:
    """The fault that leaves the same world: what lands late is a kill at first."""
    return fault if fault.is_power else kill(fault.point)


class Contents:
    """Every content that some copy holds, once. ``full`` when there is no room for another."""

    def __init__(self, bytes_max: int = BYTES_MAX, beside: Contents | None = None) -> None:
        self._kept: dict[bytes, bytes] = {}
        self._bytes = 0
        self._bytes_max = bytes_max
        self._beside = beside

    def keep(self, content: bytes) -> bytes:
        """Keep ``content``; its digest."""
        digest = hashlib.blake2b(content, digest_size=16).digest()
        if digest not in self._kept:
            self._kept[digest] = content
            self._bytes += len(content)
        return digest

    def __getitem__(self, digest: bytes) -> bytes:
        if self._beside is not None and digest not in self._kept:
            return self._beside[digest]
        return self._kept[digest]

    @property
    def full(self) -> bool:
        """Whether no further copies should be made."""
        return self._bytes > self._bytes_max

    def keep_only(self, digests: set[bytes]) -> None:
        """Forget all but these."""
        self._kept = {known: content for known, content in self._kept.items() if known in digests}
        self._bytes = sum(map(len, self._kept.values()))


class Camera:
    """Takes the state of some folders again and again, while nothing in them moves."""

    def __init__(self, folders: Mapping[str, Path], contents: Contents) -> None:
        self._folders = folders
        self._contents = contents
        self._last: dict[str, tuple[tuple[int, ...], Entry]] = {}

    def take(self, changed: Iterable[str] | None = None) -> Tree:
        """Everything as it is now.

        Args:
            changed: the absolute paths of the files that may have changed since the last time;
                None where that is not known. A time stamp does not tell: it moves in ticks.
        """
        known = {} if changed is None else self._last
        dirty = set() if changed is None else set(changed)
        found: dict[str, tuple[tuple[int, ...], Entry]] = {}
        for label, folder in self._folders.items():
            self._walk(label, str(folder), known, dirty, found)
        self._last = found
        return {path: entry for path, (_, entry) in found.items()}

    def _walk(
        self,
        label: str,
        folder: str,
        known: Mapping[str, tuple[tuple[int, ...], Entry]],
        dirty: set[str],
        found: dict[str, tuple[tuple[int, ...], Entry]],
    ) -> None:
        with os.scandir(folder) as entries:
            children = sorted(entries, key=lambda entry: entry.name)
        for child in children:
            name = f"{label}/{child.name}"
            status = child.stat(follow_symlinks=False)
            mode = status.st_mode
            if stat.S_ISDIR(mode):
                found[name] = ((), Entry(mode))
                # a folder that was renamed away and back may hold anything by now
                self._walk(name, child.path, {} if child.path in dirty else known, dirty, found)
            elif stat.S_ISLNK(mode):
                found[name] = ((), Entry(mode, os.fsencode(os.readlink(child.path))))
            elif stat.S_ISREG(mode):
                signs = (status.st_ino, status.st_size, status.st_mtime_ns, mode)
                old = known.get(name)
                one_name = status.st_nlink == 1  # else it may have changed under another one
                if old is not None and old[0] == signs and one_name and child.path not in dirty:
                    found[name] = old
                    continue
                content = self._contents.keep(Path(child.path).read_bytes())
                found[name] = (signs, Entry(mode, content, status.st_mtime_ns))

    def put_back(self, tree: Tree) -> None:
        """Make the folders what they were when ``tree`` was taken."""
        self._last = {}
        for folder in self._folders.values():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        for name, entry in tree.items():
            label, _, relative = name.partition("/")
            path = self._folders[label] / relative
            if stat.S_ISDIR(entry.mode):
                path.mkdir()
            elif stat.S_ISLNK(entry.mode):
                path.symlink_to(os.fsdecode(entry.content))
            else:
                path.write_bytes(self._contents[entry.content])
                path.chmod(stat.S_IMODE(entry.mode))
                os.utime(path, ns=(entry.mtime_ns, entry.mtime_ns))
        for name, entry in reversed(list(tree.items())):
            if stat.S_ISDIR(entry.mode):  # last: nothing could be made in a folder without write
                label, _, relative = name.partition("/")
                (self._folders[label] / relative).chmod(stat.S_IMODE(entry.mode))


def digest_of(tree: Tree, services: Iterable[bytes]) -> bytes:
    """Equal for equal worlds.

    SQLite's wal-index is left out where its log is there: it holds nothing that is not in the log,
    and whoever opens the database after a crash makes it anew (sqlite.org/walformat.html, 2).
    """
    digest = hashlib.blake2b(digest_size=16)
    for name, entry in tree.items():
        if name.endswith("-shm") and f"{name.removesuffix('-shm')}-wal" in tree:
            continue
        encoded = os.fsencode(name)
        digest.update(b"%d %d %o " % (len(encoded), len(entry.content), entry.mode))
        digest.update(encoded + entry.content)
    for known in services:
        digest.update(b"%d " % len(known) + known)
    return digest.digest()
