"""What a power cut leaves: the work folder's durability, followed call by call.

A SIGKILL loses nothing that a system call has finished; a power cut also loses what was never
synced. The rules are those of POSIX taken strictly (the profile's name is "posix"): a file's bytes
are durable once the file was synced, and a name is durable once the folder that holds it was. Real
file systems forgive more: ext4 by default also makes the name of a new file durable with its
fsync, and writes data before it commits a rename over another file (``auto_da_alloc``). So what is
found with this is "not guaranteed by POSIX", not "lost on your machine".

Sources of the rules:
    * fsync(2): syncing a file does not necessarily sync its entry in the folder; that takes an
      fsync of the folder. fdatasync(2) leaves out only what is not needed to read the data.
    * sync_file_range(2): no guarantee after a crash, so that it counts as nothing here.
    * open(2): O_SYNC and O_DSYNC are an fsync or fdatasync after each write; opening and
      truncating are not writes.
    * The kernel's admin-guide/ext4.rst on ``auto_da_alloc``: with delayed allocation a file is
      "zero-length" after a crash if its name or its truncation was committed before its data.
    * A rename takes place in both folders or in neither, whichever of them is synced, in the
      order in which names depend on each other: every journalling file system does that, and a
      file that is in no folder at all would be a false alarm. (POSIX promises less.)

The profiles (`chaoskit.model.schedule.Profile`), by what lives of the unsynced changes:
    drop: none. Durable names with durable bytes.
    meta: names and sizes that were set. The names are those of now. A file that was never synced is
        empty; one that was has its durable bytes; writing does not lengthen it (delayed
        allocation), truncating and fallocate set its size at once, with zeros where it grows.
    data: data in files. Durable names with the bytes of now: what was created, renamed or removed
        in a folder that was not synced since is undone.

Not modelled: any mixture between the three profiles (some of the unsynced writes, some of the
names, in another order); torn blocks; a sync that was under way; stores to a mapped file after its
last name was removed; an msync of a range, which counts for the file. A write through an O_SYNC
descriptor makes earlier unsynced writes to the same file durable too. Holes that are punched count
as data. Permissions change at once. Of a file without a name only its last sync is known, in case
it gets one (O_TMPFILE, or a rename from outside). Mount points below the work folder.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from chaoskit.model.actions import PROFILES, Profile
from chaoskit.trial.power_disk import PERMISSIONS, Disk, Entry, File, Folder, Symlink

__all__ = ["Disk", "Durable", "Entry", "File", "Folder", "Symlink"]

_SYNC_ALL = {"sync", "syncfs"}
_SYNC = {"fsync", "fdatasync", "msync"}
_PROMISE_NOTHING = {"sync_file_range"}
_RENAME = {"rename", "renameat", "renameat2"}
_LINK = {"link", "linkat"}
_REMOVE = {"unlink", "unlinkat", "rmdir"}
_MAKE = {"mkdir", "mkdirat", "symlink", "symlinkat", "mknod", "mknodat"}
_NAMES = {*_RENAME, *_LINK, *_REMOVE, *_MAKE}
_NOT_A_WRITE = {"open", "openat", "openat2", "creat", "truncate", "ftruncate"}
_RESIZE = {*_NOT_A_WRITE, "fallocate"}
"""Calls that set a size, which is metadata; a write that lengthens a file is not one of them."""

_DELETED = " (deleted)"
_TMPFILE = re.compile(r".*/#(\d+)", re.DOTALL)
"""How /proc shows a descriptor without a name, and, in it, one that never had any (O_TMPFILE)."""


@dataclass(slots=True, eq=False)
class _File:
    inode: int
    live: File
    sized: File
    """Its durable bytes, with the size that was set since: what `meta` leaves."""
    kept: File
    linked: bool
    """Whether it has or had several names."""

    def sync(self) -> None:
        self.sized = self.kept = self.live

    def become(self, now: File, *, resized: bool) -> None:
        """Take what was read, and the size that a call has set."""
        size = len(now.content)
        if resized and size != len(self.live.content):
            content = self.sized.content[:size].ljust(size, b"\0")
            self.sized = replace(self.sized, content=content)
        if now != self.live:
            self.live = now
        if now.mode != self.kept.mode:
            self.kept = replace(self.kept, mode=now.mode)
            self.sized = replace(self.sized, mode=now.mode)


@dataclass(slots=True, eq=False)
class _Symlink:
    inode: int
    target: str


@dataclass(slots=True, eq=False)
class _Folder:
    inode: int
    mode: int
    live: dict[str, _Node]
    kept: dict[str, _Node]


_Node = _File | _Folder | _Symlink
_KINDS = {_File: stat.S_IFREG, _Folder: stat.S_IFDIR, _Symlink: stat.S_IFLNK}
_Names = Callable[[_Folder], dict[str, _Node]]
_Bytes = Callable[[_File], File]
_Spot = tuple[_Folder, str]
"""A folder, and a name in it."""

_VIEWS: dict[Profile, tuple[_Names, _Bytes]] = {
    "drop": (attrgetter("kept"), attrgetter("kept")),
    "meta": (attrgetter("live"), attrgetter("sized")),
    "data": (attrgetter("kept"), attrgetter("live")),
}


@dataclass(slots=True, eq=False)
class _Move:
    """A rename from one folder to another that neither of them has made durable."""

    node: _Node
    source: _Folder
    old: str
    target: _Folder
    new: str

    def leave(self) -> None:
        """Undo the durable names that the source has no more: also those before a rename in it.

        Other hard links in the same folder stay.
        """
        names = self.source.kept
        gone = [
            name
            for name, node in names.items()
            if node is self.node
            and (
                name == self.old
                or isinstance(node, _Folder)
                or self.source.live.get(name) is not node
            )
        ]
        for name in gone:
            del names[name]

    def needs(self, earlier: _Move) -> bool:
        """Whether a disk with this move and without that earlier one would make no sense."""
        folders = isinstance(self.node, _Folder) and isinstance(earlier.node, _Folder)
        same_spot = self.target is earlier.target and self.new == earlier.new
        return self.node is earlier.node or folders or same_spot


class Durable:
    """What a disk holds for certain, followed call by call.

    Files are known by their names, not by inode numbers, which are given to the next file at once:
    a number only tells whether a name still means the same file, and a file that appears under a
    name that was free is a new one, with nothing durable, whatever its number.

    Everything in the folder is kept in memory, up to three times where it is not synced.

    Args:
        root: the work folder; as it is now it counts as durable.

    Raises:
        OSError: something in it cannot be read.
    """

    def __init__(self, root: Path) -> None:
        self._path = os.path.realpath(root)
        self._device = os.stat(self._path).st_dev
        self._former: dict[str, int] = {}
        self._synced_outside: set[int] = set()
        self._mapped: set[int] = set()
        self._settle()

    def saw(
        self, call: str, paths: tuple[str, ...], result: int = 0, *, sync_write: bool = False
    ) -> None:
        """Follow one call that has ended, while every process of the task stands still.

        Args:
            call: the kernel's name for it. One that is not known here counts as a write. Report an
                mmap that is shared and writable, so that what is stored in that file is seen, and
                an msync with the mapped file's path, if it was MS_SYNC.
            paths: the absolute paths that it acted on, as /proc/pid/fd shows them for a
                descriptor (" (deleted)" included); for a rename or link the old one and the new
                one; for a symlink the new name last. Those outside the work folder do no harm.
            result: below 0 it failed, and nothing changed.
            sync_write: the descriptor was opened with O_SYNC or O_DSYNC, or the call had RWF_SYNC
                or RWF_DSYNC.

        Raises:
            OSError: a file that changed cannot be read.
        """
        if result < 0 or call in _PROMISE_NOTHING:
            return
        self._made.clear()
        if call in _SYNC_ALL:
            if call == "sync" or not paths or self._inode(paths[0]) is not None:
                self._settle()
        elif call in _NAMES:
            self._name(call, paths)
        else:
            for path in paths:
                self._touch(call, path, durable=sync_write and call not in _NOT_A_WRITE)

    def disks(self) -> dict[Profile, Disk]:
        """What could be there after a power cut now. Only mapped files are read for it.

        Raises:
            OSError: one of those cannot be read.
        """
        self._read_mapped()
        for profile in PROFILES:
            if profile not in self._made:
                self._made[profile] = _disk(self._root, *_VIEWS[profile])
        return dict(self._made)

    def _settle(self) -> None:
        """Everything as it is now is durable."""
        root = _found(self._path, {}, lambda _: True)
        assert isinstance(root, _Folder)
        self._root = root
        self._moves: list[tuple[_Move, ...]] = []
        self._made: dict[Profile, Disk] = {}

    def _read_mapped(self) -> None:
        """Take in what was stored into files that are mapped; no call tells of it."""
        if not self._mapped:
            return
        for name, node in _walk(self._root, _VIEWS["meta"][0]):
            if not isinstance(node, _File) or node.inode not in self._mapped:
                continue
            path, before = f"{self._path}/{name}", node.live
            status = _status(path)
            if status is not None and _is(node, status):
                node.become(_read(path), resized=False)
            if node.live is not before:
                self._made.clear()

    # Finding what a path means.

    def _spot(self, path: str) -> _Spot | None:
        """Where the name ``path`` is, the last part not followed; None outside the work folder."""
        spot = self._plain_spot(path)
        if spot is not None:
            return spot
        folder, name = os.path.split(path.rstrip("/"))
        real = os.path.join(os.path.realpath(folder), name)
        if name in {".", ".."}:
            real = os.path.realpath(path)
        return None if real == path else self._plain_spot(real)

    def _plain_spot(self, path: str) -> _Spot | None:
        """`_spot` for a path without links and dots, which costs no system call."""
        if not path.startswith(f"{self._path}/"):
            return None
        *parents, name = path[len(self._path) + 1 :].split("/")
        if not {"", ".", ".."}.isdisjoint((*parents, name)):
            return None
        folder = self._root
        place = self._path
        for part in parents:
            place = f"{place}/{part}"
            node = folder.live.get(part) or self._take((folder, part), place)
            if not isinstance(node, _Folder):
                return None
            folder = node
        return folder, name

    def _see(self, path: str) -> tuple[_Node | None, str]:
        """What ``path`` leads to, as a known node if it still is that one; and its own path."""
        status = _status(path)
        if status is None and (other := self._other_name(path)) is not None:
            path, status = other, _status(other)
        spot = self._spot(path)
        if spot is None:
            is_root = os.path.realpath(path) == self._path
            return (self._root if is_root else None), path
        folder, name = spot
        node = folder.live.get(name)
        if node is None or status is None or not _is(node, status):
            node = self._take(spot, path)
        if isinstance(node, _Symlink):
            real = os.path.realpath(path)
            return (None, path) if real == path else self._see(real)
        if isinstance(node, _Folder) and status is not None:
            node.mode = status.st_mode & PERMISSIONS
        return node, path

    def _other_name(self, path: str) -> str | None:
        """Another path of a file whose descriptor still goes by one that has gone."""
        inode = self._former.get(path.removesuffix(_DELETED)) or _tmpfile_inode(path)
        if inode is None:
            return None
        for name, node in _walk(self._root, _VIEWS["meta"][0]):
            if node.inode == inode and isinstance(node, _File):
                return f"{self._path}/{name}"
        return None

    def _inode(self, path: str) -> int | None:
        """The number of what is on the work folder's file system, so may get a name in it."""
        try:
            status = os.stat(path)
        except OSError:
            return _tmpfile_inode(path)
        return status.st_ino if status.st_dev == self._device else None

    def _take(self, spot: _Spot, path: str) -> _Node | None:
        """What is found at ``path``, as something new."""
        folder, name = spot
        node = _found(path, {}, self._synced_outside.__contains__)
        if node is None:
            folder.live.pop(name, None)
        else:
            folder.live[name] = node
            self._synced_outside.discard(node.inode)
        return node

    # What the calls do.

    def _name(self, call: str, paths: tuple[str, ...]) -> None:
        if call in _RENAME:
            self._rename(paths[0], paths[1])
        elif call in _LINK:
            self._link(paths[0], paths[-1])
        else:
            self._renew(paths[-1])

    def _renew(self, path: str) -> None:
        """A name was made or removed: whatever it meant before, it does not mean any more."""
        spot = self._spot(path)
        if spot is None:
            return
        before = spot[0].live.get(spot[1])
        if isinstance(before, _File) and before.linked:
            folder, name = os.path.split(path)
            self._former[os.path.join(os.path.realpath(folder), name)] = before.inode
        self._take(spot, path)

    def _touch(self, call: str, path: str, *, durable: bool) -> None:
        """A file's bytes, size or permissions may have changed, or it was synced, or a folder."""
        syncs = durable or call in _SYNC
        node, path = self._see(path)
        if isinstance(node, _File):
            if call == "mmap":
                self._mapped.add(node.inode)
            node.become(_read(path), resized=call in _RESIZE)
            if syncs:
                node.sync()
        elif isinstance(node, _Folder) and syncs:
            self._sync_folder(node)
        elif node is None:
            self._outside(path, synced=syncs)

    def _outside(self, path: str, *, synced: bool) -> None:
        """Remember which files without a name here are synced, in case they get one."""
        inode = self._inode(path)
        if inode is not None and synced:
            self._synced_outside.add(inode)
        elif inode is not None:
            self._synced_outside.discard(inode)

    def _link(self, old: str, new: str) -> None:
        target, status = self._spot(new), _status(new)
        if target is None or status is None:
            return
        for path in (old, os.path.realpath(old)):
            source = self._spot(path)
            node = source and source[0].live.get(source[1])
            if node is not None and _is(node, status):
                target[0].live[target[1]] = node
                if isinstance(node, _File):
                    node.linked = True
                return
        self._take(target, new)

    def _rename(self, old: str, new: str) -> None:
        source, target = self._spot(old), self._spot(new)
        node = source and source[0].live.get(source[1])
        if source is None or target is None or node is None:
            self._renew(old)
            self._renew(new)
            return
        (folder, name), (to_folder, to_name) = source, target
        other = to_folder.live.get(to_name)
        left = _status(old)
        if left is not None and _is(node, left):
            return  # both were names of one file: rename(2) does nothing
        moves = [_Move(node, folder, name, to_folder, to_name)]
        to_folder.live[to_name] = node
        if left is not None and other is not None and _is(other, left):
            folder.live[name] = other  # RENAME_EXCHANGE
            moves.append(_Move(other, to_folder, to_name, folder, name))
        else:
            self._take(source, old)
        if folder is not to_folder:
            self._moves.append(tuple(moves))

    def _sync_folder(self, folder: _Folder) -> None:
        """The folder's names are durable, and so is the other end of what was moved in or out."""
        folder.kept = dict(folder.live)
        due: list[tuple[_Move, ...]] = []
        for moves in reversed(self._moves):
            touches = any(folder in (move.source, move.target) for move in moves)
            later = (move for group in due for move in group)
            if touches or any(move.needs(earlier) for move in later for earlier in moves):
                due.insert(0, moves)
        for moves in due:
            for move in moves:
                if move.source is not folder:
                    move.leave()
            for move in moves:
                if move.target is not folder:
                    move.target.kept[move.new] = move.node
        done = set(map(id, due))
        self._moves = [moves for moves in self._moves if id(moves) not in done]


def _disk(root: _Folder, names: _Names, content: _Bytes) -> Disk:
    first: dict[_File, str] = {}
    entries: dict[str, Entry] = {}
    for path, node in sorted(_walk(root, names), key=lambda found: found[0]):
        if isinstance(node, _File):
            file = content(node)
            name = first.setdefault(node, path)
            entries[path] = file if name == path else replace(file, same_as=name)
        elif isinstance(node, _Folder):
            entries[path] = Folder(node.mode)
        else:
            entries[path] = Symlink(node.target)
    return Disk(entries)


def _walk(folder: _Folder, names: _Names, prefix: str = "") -> Iterator[tuple[str, _Node]]:
    for name, node in names(folder).items():
        yield prefix + name, node
        if isinstance(node, _Folder):
            yield from _walk(node, names, f"{prefix}{name}/")


def _found(path: str, linked: dict[int, _File], is_synced: Callable[[int], bool]) -> _Node | None:
    """What is at ``path``, with all that is below it; None for what no disk holds."""
    status = _status(path)
    if status is None:
        return None
    inode, mode = status.st_ino, status.st_mode & PERMISSIONS
    if stat.S_ISLNK(status.st_mode):
        return _Symlink(inode, os.readlink(path))
    if stat.S_ISDIR(status.st_mode):
        below = {name: _found(f"{path}/{name}", linked, is_synced) for name in os.listdir(path)}
        live = {name: node for name, node in below.items() if node is not None}
        return _Folder(inode, mode, live, dict(live) if is_synced(inode) else {})
    if not stat.S_ISREG(status.st_mode):
        return None
    if inode not in linked:
        live_file = _read(path)
        kept = live_file if is_synced(inode) else replace(live_file, content=b"")
        linked[inode] = _File(inode, live_file, kept, kept, status.st_nlink > 1)
    return linked[inode]


def _read(path: str) -> File:
    with open(path, "rb", buffering=0) as file:
        return File(file.readall(), os.fstat(file.fileno()).st_mode & PERMISSIONS)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is(node: _Node, status: os.stat_result) -> bool:
    """Whether a known node is what was found under its name."""
    return node.inode == status.st_ino and _KINDS[type(node)] == stat.S_IFMT(status.st_mode)


def _tmpfile_inode(path: str) -> int | None:
    found = _TMPFILE.fullmatch(path.removesuffix(_DELETED))
    return int(found[1]) if found else None
