"""The folders of one supervisor: the task's work folder, the services' files, the inputs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from chaoskit.model.errors import ScenarioError, UsageError, naming
from chaoskit.model.events import Output, StateObserved
from chaoskit.model.patterns import MAGIC, split_pattern
from chaoskit.trial import files
from chaoskit.trial.view import WORK, View

PREFIX = "chaoskit-"
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - its folders have random names
_FREE_BYTES_MIN = 1 << 30
_SOCKET_BYTES_MAX = 103
"""A longer path is no address of a socket: 107 bytes on Linux, 103 on macOS."""

CONTENT_BYTES_MAX = 64 * 1024
"""Of a larger output only the size is stored, and the digest."""

CONTENTS_BYTES_MAX = 1 << 20
"""How much content of all outputs together is stored of one trial."""

_ELSEWHERE = "name another folder with --work-dir, or in TMPDIR"


def default_root() -> Path:
    """Where work folders go: memory where there is plenty (SIGKILL keeps the page cache anyway)."""
    if os.access(_SHARED_MEMORY, os.W_OK):
        space = os.statvfs(_SHARED_MEMORY)
        if space.f_bavail * space.f_frsize > _FREE_BYTES_MIN:
            return _SHARED_MEMORY
    with naming("no folder", "for temporary files", _ELSEWHERE):
        return Path(tempfile.gettempdir())


class Workspace:
    """Made once, used for every trial.

    Attributes:
        base: the folder with all of it.
        state: the work folder, as the supervisor finds it.
        home: the work folder, as the task finds it; in a view it is the same in every run.
        cwd: the task's working directory.
    """

    def __init__(self, root: Path | None = None) -> None:
        root = root or default_root()
        with naming(root, "cannot hold work folders", _ELSEWHERE):
            made = tempfile.mkdtemp(prefix=PREFIX, dir=root)
        self.base = Path(made).resolve()  # as the kernel calls it: calls are known by their paths
        self.state = self.base / "home" / "state"
        self.services = self.base / "services"
        self.inputs = self.base / "inputs.json"
        self.socket = self.base / "probe"
        self.where = self.base / "where"
        self.home = self.cwd = str(self.state)
        self._view: View | None = None
        if len(os.fsencode(self.socket)) > _SOCKET_BYTES_MAX:
            self.remove()
            raise UsageError(f"{root} is too long a path for the socket in it; {_ELSEWHERE}")
        with naming(root, "cannot hold work folders", _ELSEWHERE):
            for folder in (self.state, self.services, self.where):
                folder.mkdir(parents=True)

    def enter(self, view: View, cwd: str) -> None:
        """The task runs in ``view``, in the folder ``cwd``; empty: in the work folder."""
        self._view = view
        self.home = WORK
        self.cwd = cwd or WORK

    @property
    def area(self) -> Path:
        """The folder in which the task's own files are looked for, as the supervisor finds it."""
        if self._view is None or self.cwd == self.home:
            return self.state
        return self._view.outside(self.cwd)

    @property
    def written(self) -> Path:
        """The folder with those files below `area` that the task has written."""
        if self._view is None or self.cwd == self.home:
            return self.state
        return Path(self._view.upper(self.cwd))

    def ours(self, path: str) -> str:
        """Where a file lies, by its path as the task finds it."""
        if path == self.home or path.startswith(f"{self.home}/"):
            return f"{self.state}{path.removeprefix(self.home)}"
        return path if self._view is None else self._view.upper(path)

    def write_inputs(self, inputs: object) -> None:
        """Store the task's inputs.

        Raises:
            ScenarioError: they are no JSON value.
        """
        try:
            self.inputs.write_text(json.dumps(inputs, ensure_ascii=False), encoding="utf-8")
        except (TypeError, ValueError) as wrong:
            raise ScenarioError(f"inputs= must make a JSON value: {wrong}") from wrong

    def observed(
        self, patterns: Sequence[str], user: str, known: Mapping[str, str]
    ) -> StateObserved:
        """Every file that a pattern matches, by its path as the pattern gives it.

        A pattern is that of a point's file: relative to where the command runs, or with ``~/``
        (below ``user``, the task's home), ``/`` or ``state:`` in front. Links are followed as the
        task follows them.

        A history is UTF-8 throughout: bytes of a name that are not stand as ``\\xff``. The content
        of one whose digest is ``known`` is left out.
        """
        digests: dict[str, str] = {}
        outputs: dict[str, Output] = {}
        room = CONTENTS_BYTES_MAX
        for name, file in self._matched(patterns, user):
            digests[name] = digest = _digest(file)
            size = file.stat().st_size
            kept = known.get(name) != digest and size <= min(CONTENT_BYTES_MAX, room)
            outputs[name] = Output(size, file.read_bytes() if kept else None)
            room -= size * kept
        return StateObserved(digests, outputs)

    def sizes(self, patterns: Sequence[str], user: str) -> dict[str, int]:
        """The size in bytes of every file that a pattern matches; see `observed`."""
        return {name: file.stat().st_size for name, file in self._matched(patterns, user)}

    def _matched(self, patterns: Sequence[str], user: str) -> Iterator[tuple[str, Path]]:
        for pattern in patterns:
            start, rest = split_pattern(pattern)
            folder = {"": self.cwd, "state:": self.home, "~/": user}.get(start, start)
            for name in _matches(self._seen(folder), rest):
                file = self._seen(f"{folder}/{name}")
                if file.is_file():
                    yield os.fsencode(start + name).decode(errors="backslashreplace"), file

    def _seen(self, path: str) -> Path:
        """What the task finds at an absolute path, as this process can read it."""
        return Path(path) if self._view is None else self._view.outside(self._view.real(path))

    def copy_state(self, folder: Path, bytes_max: int) -> bool:
        """Copy what the task wrote to ``folder``. False, and nothing done, above ``bytes_max``."""
        written = self.written
        if _bytes_in(written) > bytes_max:
            return False
        if written.is_dir():
            shutil.copytree(written, folder, symlinks=True, dirs_exist_ok=True, ignore=_not_plain)
        return True

    def remove(self) -> None:
        """Remove everything."""
        files.remove(str(self.base))


def _matches(area: Path, pattern: str) -> list[str]:
    """What a pattern matches, relative to ``area``. A plain name is not looked up: it may be a link
    that leads nowhere from here.
    """
    if not MAGIC & set(pattern):
        return [pattern]
    return sorted(match.relative_to(area).as_posix() for match in area.glob(pattern))


def _digest(file: Path) -> str:
    """The digest of a file's content; its holes count as NULs, and cost nothing but time."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _bytes_in(folder: Path) -> int:
    """How much a copy would hold: the larger of what files say, and what they take."""
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())


def _not_plain(folder: str, names: list[str]) -> set[str]:
    """Sockets, pipes, devices and what cannot be read cannot be copied."""
    paths = ((name, Path(folder, name)) for name in names)
    return {n for n, p in paths if not (p.is_symlink() or _is_copied(p))}


def _is_copied(path: Path) -> bool:
    return (path.is_dir() or path.is_file()) and os.access(path, os.R_OK)
