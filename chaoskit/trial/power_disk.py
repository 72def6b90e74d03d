"""A disk as a value: what is in a folder, by relative path, to compare, to read and to write."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PERMISSIONS = 0o7777
"""The bits of a mode that belong to a disk."""


@dataclass(frozen=True)
class File:
    """A file's bytes and permissions.

    ``same_as`` is the first of its paths, in alphabetical order, where a file has several (hard
    links) and this is not the first; otherwise it is empty.
    """

    content: bytes
    mode: int = 0o644
    same_as: str = ""

    @cached_property
    def mark(self) -> bytes:
        """Equal for equal files; computed once, however many disks hold this file."""
        return _mark(b"file", b"%o" % self.mode, os.fsencode(self.same_as), self.content)


@dataclass(frozen=True)
class Folder:
    """A folder's permissions; what is in it has paths of its own."""

    mode: int = 0o755

    @cached_property
    def mark(self) -> bytes:
        """Equal for equal folders."""
        return _mark(b"folder", b"%o" % self.mode)


@dataclass(frozen=True)
class Symlink:
    """A symbolic link's text, wherever it may lead."""

    target: str

    @cached_property
    def mark(self) -> bytes:
        """Equal for equal links."""
        return _mark(b"symlink", os.fsencode(self.target))


Entry = File | Folder | Symlink


class Disk(Mapping[str, Entry]):
    """Relative paths ("a/b") and what they name, in alphabetical order; never changes.

    Sockets, pipes and devices are not on it, and neither are owners, times and extended attributes.
    """

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries = dict(sorted(entries.items()))

    @classmethod
    def read(cls, folder: Path) -> Disk:
        """What is in ``folder`` now.

        Raises:
            OSError: something in it cannot be read.
        """
        found = sorted(_below(os.fspath(folder), ""))
        first: dict[tuple[int, int], str] = {}
        entries: dict[str, Entry] = {}
        for path, place, status in found:
            mode = status.st_mode & PERMISSIONS
            if stat.S_ISDIR(status.st_mode):
                entries[path] = Folder(mode)
            elif stat.S_ISLNK(status.st_mode):
                entries[path] = Symlink(os.readlink(place))
            else:
                name = first.setdefault((status.st_dev, status.st_ino), path)
                content = Path(place).read_bytes()
                entries[path] = File(content, mode, "" if name == path else name)
        return cls(entries)

    def digest(self) -> str:
        """64 hex digits that equal disks share, in every process."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return _mark(*(m for p, e in self.items() for m in (os.fsencode(p), e.mark))).hex()

    def write_to(self, folder: Path) -> None:
        """Make ``folder`` hold exactly this, whatever was in it; it is made if it is missing.

        Raises:
            OSError: something cannot be removed or written.
        """
        folder.mkdir(parents=True, exist_ok=True)
        empty(folder)
        for path, entry in self.items():
            place = os.path.join(folder, path)
            if isinstance(entry, Folder):
                os.mkdir(place, 0o700)
            elif isinstance(entry, Symlink):
                os.symlink(entry.target, place)
            elif entry.same_as:
                os.link(os.path.join(folder, entry.same_as), place)
            else:
                _write(place, entry)
        for path, entry in reversed(
            self._entries.items()
        ):  # a folder may forbid what had to be put in it
            if isinstance(entry, Folder):
                os.chmod(os.path.join(folder, path), entry.mode)

    def __getitem__(self, path: str) -> Entry:
        return self._entries[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __hash__(self) -> int:
        return hash(self._digest)

    def __repr__(self) -> str:
        return f"Disk({self._entries!r})"


def empty(folder: Path) -> None:
    """Remove everything in ``folder``, also what its permissions protect.

    Raises:
        OSError: something cannot be removed.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.path, 0o700)
                empty(Path(entry.path))
                os.rmdir(entry.path)
            else:
                os.unlink(entry.path)


def _below(folder: str, prefix: str) -> Iterator[tuple[str, str, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            kind = stat.S_IFMT(status.st_mode)
            if kind in {stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK}:
                yield prefix + entry.name, entry.path, status
            if kind == stat.S_IFDIR:
                yield from _below(entry.path, f"{prefix}{entry.name}/")


def _write(place: str, file: File) -> None:
    with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(file.content)
        os.fchmod(out.fileno(), file.mode)


def _mark(*parts: bytes) -> bytes:
    """A hash of the parts in their order, each with its length, so that none runs into the next."""
    state = hashlib.blake2b(digest_size=32)
    for part in parts:
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    return state.digest()
