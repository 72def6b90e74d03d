"""An older copy of what a task has written, and how it is put back: type, mode, time and content.

What lies outside the folder where the task runs and the work folder is not in it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from chaoskit.model.preludes import WHOLE
from chaoskit.trial.workspace import Workspace

Covers = Callable[[str, str], bool]
"""Whether a pattern matches a path; both are relative to one folder."""


class _Entry(NamedTuple):
    """A folder, a link or a regular file; ``content`` is where a link leads, too."""

    mode: int
    mtime_ns: int
    content: bytes


class OlderCopy:
    """The files as the latest attempt found them."""

    def __init__(self, workspace: Workspace, covers: Covers) -> None:
        self._workspace = workspace
        self._covers = covers
        self._kept: dict[str, dict[str, _Entry]] = {}

    def forget(self) -> None:
        """Hold nothing."""
        self._kept.clear()

    def make(self) -> None:
        """Copy what is there now."""
        self._kept = {}
        for area, written, _ in self._trees():
            found = ((name, _entry(Path(area, name))) for name in _names(written))
            self._kept[area] = {name: entry for name, entry in found if entry is not None}

    def put_back(self, pattern: str) -> bool:
        """Put back what ``pattern`` covers.

        Returns:
            Whether any file or link is covered, there or in the copy.
        """
        trees = self._trees() if pattern == WHOLE else self._trees()[:1]
        covered = [self._put_back(pattern, *tree) for tree in trees]
        return any(covered)

    def _put_back(self, pattern: str, area: str, written: str, original: str) -> bool:
        kept = self._kept.get(area, {})
        there = {name: os.lstat(Path(area, name)).st_mode for name in _names(written)}
        names = sorted(name for name in there.keys() | kept.keys() if self._covers(pattern, name))
        older = {name: kept.get(name) or _original(original, name) for name in names}
        for name in reversed(names):  # what is in a folder before the folder
            entry = older[name]
            if name in there and (entry is None or _type(entry.mode) != _type(there[name])):
                _remove(Path(area, name))
        for name in names:
            if (entry := older[name]) is not None:
                _make(Path(area, name), entry)
        modes = [there.get(name) or kept[name].mode for name in names]
        return not all(map(stat.S_ISDIR, modes))

    def _trees(self) -> list[tuple[str, str, str]]:
        """Where the task's files are found, where those that it wrote lie, and where those are that
        it had not written: empty where there is no such place.
        """
        space = self._workspace
        first = (str(space.area), str(space.written))
        if space.cwd == space.home:
            return [(*first, "")]
        return [(*first, space.cwd), (str(space.state), str(space.state), "")]


def _type(mode: int) -> int:
    return stat.S_IFMT(mode)


def _names(folder: str) -> Iterator[str]:
    """Every folder, link and regular file below ``folder``, relative to it; links are not
    followed.
    """
    for where, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(where, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISDIR(mode) or stat.S_ISREG(mode) or stat.S_ISLNK(mode):
                yield os.path.relpath(path, folder)


def _entry(path: Path) -> _Entry | None:
    """What is at ``path``; None where it is neither a folder nor a link nor a regular file."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    content = b""
    if stat.S_ISLNK(found.st_mode):
        content = os.fsencode(path.readlink())
    elif stat.S_ISREG(found.st_mode):
        content = path.read_bytes()
    elif not stat.S_ISDIR(found.st_mode):
        return None
    return _Entry(found.st_mode, found.st_mtime_ns, content)


def _original(folder: str, name: str) -> _Entry | None:
    """The file that the task has since written over in its view."""
    return _entry(Path(folder, name)) if folder else None


def _remove(path: Path) -> None:
    if not path.is_dir() or path.is_symlink():
        path.unlink()
        return
    with suppress(OSError):  # it holds what the pattern does not cover
        path.rmdir()


def _make(path: Path, entry: _Entry) -> None:
    if stat.S_ISDIR(entry.mode):
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    there = _entry(path)
    if there is None or there.content != entry.content:
        path.unlink(missing_ok=True)  # it may have another name that stays
        if stat.S_ISLNK(entry.mode):
            path.symlink_to(os.fsdecode(entry.content))
        else:
            path.write_bytes(entry.content)
            path.chmod(stat.S_IMODE(entry.mode))
    os.utime(path, ns=(entry.mtime_ns, entry.mtime_ns), follow_symlinks=False)
