"""Snapshots of the durable world: the files that a kill leaves behind, and what the services know.

Contents are kept once, by digest, in memory. A file is read again only where it can have changed,
so that a snapshot at each of a thousand calls costs little. `chaoskit.trial.files` lists what of a
file is kept.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from chaoskit.model.actions import PowerLoss
from chaoskit.model.schedule import Fault, kill
from chaoskit.trial import files
from chaoskit.trial.in_flight import LateRequest
from chaoskit.trial.recorder import Log

BYTES_MAX = 512 << 20
"""A worker keeps no more than this in copies of the world; further points get real kills."""

_PIECE = struct.Struct("=Q16s")


@dataclass(frozen=True, slots=True)
class Entry:
    """One file, folder, link, pipe, socket or device.

    Args:
        mode: its type and rights.
        content: the digest of a file's content, or a link's target.
        mtime_ns: its modification time.
        size: of a regular file.
        owner: user and group.
        extras: extended attributes.
        device: its number, of a device.
        same_as: the name of another entry, of which this is a further link; empty: of none.
        pieces: it has holes, and ``content`` is the digest of a list of its pieces.
    """

    mode: int
    content: bytes = b""
    mtime_ns: int = 0
    size: int = 0
    owner: tuple[int, int] = (0, 0)
    extras: tuple[tuple[str, bytes], ...] = ()
    device: int = 0
    same_as: str = ""
    pieces: bool = False


STATE, SERVICES = "state", "services"
"""How the folders are called in a `Tree`."""

Tree = Mapping[str, Entry]
"""Every file below some folders, and these folders, by a folder's label and relative path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The durable world at one moment of an attempt, and what had been seen until then.

    Args:
        attempt: the attempt's number.
        tree: the files.
        services: what each service knows, by digest.
        world: equal for equal worlds.
        log: the events until then.
        number: of the next request.
        late: a request that a service has received here and not applied.
        began_ns: when the trial began, as a time of day.
        at_ns: the time by the task's own clock, but for what faults have advanced it by.
    """

    attempt: int
    tree: Tree
    services: tuple[bytes, ...]
    world: bytes
    log: Log
    number: int
    late: LateRequest | None = None
    began_ns: int = 0
    at_ns: int = 0


Album = dict[Fault, Snapshot]
"""The snapshots of one attempt, by the fault that each of them is the world after; see `scene`."""


def scene(fault: Fault) -> Fault:
    """The fault that leaves the same world: what lands late is a kill at first."""
    return fault if isinstance(fault.action, PowerLoss) else kill(fault.point)


class Contents:
    """Every content that some copy holds, once. ``full`` when there is no room for another."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._kept: dict[bytes, bytes] = {}
        self._bytes = 0
        self._bytes_max = bytes_max

    def keep(self, content: bytes) -> bytes:
        """Keep ``content``; its digest."""
        digest = hashlib.blake2b(content, digest_size=16).digest()
        if digest not in self._kept:
            self._kept[digest] = content
            self._bytes += len(content)
        return digest

    def __getitem__(self, digest: bytes) -> bytes:
        return self._kept[digest]

    @property
    def full(self) -> bool:
        """Whether no further copies should be made."""
        return self._bytes > self._bytes_max

    def keep_only(self, digests: set[bytes]) -> None:
        """Forget all but these."""
        self._kept = {known: content for known, content in self._kept.items() if known in digests}
        self._bytes = sum(map(len, self._kept.values()))

    # Files.

    def keep_file(self, path: str, entry: Entry, *, dense: bool) -> Entry:
        """``entry`` with the content of the regular file at ``path``; ``dense``: without holes."""
        if dense:
            whole = b"".join(piece for _, piece in files.segments(path))
            return replace(entry, content=self.keep(whole))
        pieces = [(at, self.keep(piece)) for at, piece in files.segments(path)]
        packed = b"".join(_PIECE.pack(at, digest) for at, digest in pieces)
        return replace(entry, content=self.keep(packed), pieces=True)

    def segments(self, entry: Entry) -> Iterable[files.Segment]:
        """The data of a regular file."""
        whole = self._kept[entry.content]
        if not entry.pieces:
            return [(0, whole)] if whole else []
        return [(at, self._kept[digest]) for at, digest in _PIECE.iter_unpack(whole)]

    def of(self, entry: Entry) -> set[bytes]:
        """All digests that an entry needs."""
        if not stat.S_ISREG(entry.mode) or entry.same_as:
            return set()
        needed = {entry.content}
        if entry.pieces:
            needed.update(digest for _, digest in _PIECE.iter_unpack(self._kept[entry.content]))
        return needed


_Signs = tuple[int, ...]
_Found = dict[str, tuple[_Signs, Entry]]


class Camera:
    """Takes the state of some folders again and again, while nothing in them moves."""

    def __init__(self, folders: Mapping[str, Path], contents: Contents) -> None:
        self._folders = folders
        self._contents = contents
        self._last: _Found = {}
        self._links: dict[tuple[int, int], str] = {}

    def take(self, changed: Iterable[str] | None = None) -> Tree:
        """Everything as it is now. A folder that is not there has no entry.

        Args:
            changed: the absolute paths of the files that may have changed since the last time;
                None where that is not known. A time stamp does not tell: it moves in ticks.
        """
        known = {} if changed is None else self._last
        dirty = set() if changed is None else set(changed)
        found: _Found = {}
        self._links = {}
        for label, folder in self._folders.items():
            try:
                status = os.lstat(folder)
            except FileNotFoundError:
                continue
            self._add(label, str(folder), status, known, dirty, found)
        self._last = found
        return {path: entry for path, (_, entry) in found.items()}

    def _add(  # noqa: PLR0913 - one step of a walk
        self,
        name: str,
        path: str,
        status: os.stat_result,
        known: Mapping[str, tuple[_Signs, Entry]],
        dirty: set[str],
        found: _Found,
    ) -> None:
        mode = status.st_mode
        signs = (status.st_ino, status.st_size, status.st_mtime_ns, mode, status.st_ctime_ns)
        old = known.get(name)
        one_name = status.st_nlink == 1  # else it may have changed under another one
        same = stat.S_ISREG(mode) and one_name and path not in dirty
        if same and old is not None and old[0] == signs:
            found[name] = old
            return
        entry = Entry(
            mode,
            mtime_ns=status.st_mtime_ns,
            owner=(status.st_uid, status.st_gid),
            extras=files.attributes(path, mode),
        )
        if stat.S_ISDIR(mode):
            found[name] = signs, entry
            with files.lent(path, mode):
                # a folder that was renamed away and back may hold anything by now
                self._walk(name, path, {} if path in dirty else known, dirty, found)
            return
        same_as = self._links.setdefault((status.st_dev, status.st_ino), name)
        if same_as != name:
            entry = Entry(mode, same_as=same_as)
        elif stat.S_ISREG(mode):
            dense = status.st_blocks * 512 >= status.st_size
            sized = replace(entry, size=status.st_size)
            entry = self._contents.keep_file(path, sized, dense=dense)
        elif stat.S_ISLNK(mode):
            entry = replace(entry, content=os.fsencode(os.readlink(path)))
        else:
            entry = replace(entry, device=status.st_rdev)
        found[name] = signs, entry

    def _walk(
        self,
        name: str,
        folder: str,
        known: Mapping[str, tuple[_Signs, Entry]],
        dirty: set[str],
        found: _Found,
    ) -> None:
        with os.scandir(folder) as entries:
            children = sorted(entries, key=lambda entry: entry.name)
        for child in children:
            status = child.stat(follow_symlinks=False)
            self._add(f"{name}/{child.name}", child.path, status, known, dirty, found)

    def put_back(self, tree: Tree, labels: Iterable[str]) -> None:
        """Make some folders what they were when ``tree`` was taken."""
        self._last = {}
        wanted = set(labels)
        for label in wanted:
            files.remove(str(self._folders[label]))
        chosen = {n: e for n, e in tree.items() if n.partition("/")[0] in wanted}
        for name, entry in chosen.items():
            self._make(self._path(name), entry)
        # Last, since what is made in a folder changes it.
        for name, entry in reversed(list(chosen.items())):
            if stat.S_ISDIR(entry.mode):
                path = self._path(name)
                files.dress(path, entry.mode, entry.owner, entry.extras)
                files.stamp(path, entry.mtime_ns)

    def _path(self, name: str) -> str:
        label, _, relative = name.partition("/")
        return (
            os.path.join(self._folders[label], relative) if relative else str(self._folders[label])
        )

    def _make(self, path: str, entry: Entry) -> None:
        if entry.same_as:
            os.link(self._path(entry.same_as), path, follow_symlinks=False)
            return
        if stat.S_ISDIR(entry.mode):
            os.mkdir(path, 0o700)
            return
        if stat.S_ISLNK(entry.mode):
            os.symlink(os.fsdecode(entry.content), path)
        elif stat.S_ISREG(entry.mode):
            files.write_segments(path, entry.size, self._contents.segments(entry))
        else:
            files.make_special(path, entry.mode, entry.device)
        files.dress(path, entry.mode, entry.owner, entry.extras)
        files.stamp(path, entry.mtime_ns)


def digest_of(tree: Tree, services: Iterable[bytes], began_ns: int = 0, at_ns: int = 0) -> bytes:
    """Equal for equal worlds: from equal ones a resume goes on alike.

    Times of files count as far as a task can tell worlds apart by them: which file is newer than
    which, a time that is none of this trial's (somebody set it), and the order of magnitude of each
    one's age in seconds. The times themselves differ whenever equal contents are written again.

    SQLite's wal-index is left out where its log is there: it holds nothing that is not in the log,
    and whoever opens the database after a crash makes it anew (sqlite.org/walformat.html, 2).

    Args:
        tree: the files.
        services: what each service knows, by digest.
        began_ns: when the trial began.
        at_ns: now.
    """
    digest = hashlib.blake2b(digest_size=16)
    shown = {name: entry for name, entry in tree.items() if not _is_index(name, tree)}
    ranks = _ranks(shown, began_ns, at_ns)
    for name, entry in shown.items():
        encoded = os.fsencode(name)
        digest.update(b"%d %d %o %d " % (len(encoded), len(entry.content), entry.mode, entry.size))
        digest.update(encoded + entry.content)
        odd = (entry.owner, entry.extras, entry.device, entry.same_as, entry.pieces)
        time = None if name.startswith(f"{SERVICES}/") else ranks.get(entry.mtime_ns)
        digest.update(repr((odd, time)).encode())
    for known in services:
        digest.update(b"%d " % len(known) + known)
    return digest.digest()


def _is_index(name: str, tree: Tree) -> bool:
    return name.endswith("-shm") and f"{name.removesuffix('-shm')}-wal" in tree


def _ranks(tree: Tree, began_ns: int, at_ns: int) -> dict[int, tuple[int, int]]:
    """For each time of the task's files its place among all of them; with the time itself, or its
    age's magnitude, where that means something.
    """
    own = (e for n, e in tree.items() if not n.startswith(f"{SERVICES}/") and not e.same_as)
    times = sorted({entry.mtime_ns for entry in own})
    ranks = {}
    for place, time_ns in enumerate(times):
        drawn = began_ns <= time_ns <= at_ns
        age_s = (at_ns - time_ns) // 1_000_000_000 if drawn else 0
        ranks[time_ns] = place, age_s.bit_length() if drawn else time_ns
    return ranks
