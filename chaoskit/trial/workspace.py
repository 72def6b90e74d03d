"""The folders of one supervisor: the task's work folder, the services' files, the inputs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from chaoskit.model.errors import ScenarioError, UsageError, naming

PREFIX = "chaoskit-"
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - its folders have random names
_FREE_BYTES_MIN = 1 << 30
_SOCKET_BYTES_MAX = 103
"""A longer path is no address of a socket: 107 bytes on Linux, 103 on macOS."""

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
    """Made once, refilled for every trial, always at the same paths."""

    def __init__(self, root: Path | None = None) -> None:
        root = root or default_root()
        with naming(root, "cannot hold work folders", _ELSEWHERE):
            made = tempfile.mkdtemp(prefix=PREFIX, dir=root)
        self.base = Path(made).resolve()  # as the kernel calls it: calls are known by their paths
        self.state = self.base / "state"
        self.services = self.base / "services"
        self.inputs = self.base / "inputs.json"
        self.socket = self.base / "probe"
        self.where = self.base / "where"
        self._template = self.base / "template"
        if len(os.fsencode(self.socket)) > _SOCKET_BYTES_MAX:
            self.remove()
            raise UsageError(f"{root} is too long a path for the socket in it; {_ELSEWHERE}")
        with naming(root, "cannot hold work folders", _ELSEWHERE):
            self.services.mkdir()
            self.where.mkdir()

    def write_inputs(self, inputs: object) -> None:
        """Store the task's inputs.

        Raises:
            ScenarioError: they are no JSON value.
        """
        try:
            self.inputs.write_text(json.dumps(inputs, ensure_ascii=False), encoding="utf-8")
        except (TypeError, ValueError) as wrong:
            raise ScenarioError(f"inputs= must make a JSON value: {wrong}") from wrong

    def prepare(self, fill: Callable[[Path], None] | None) -> None:
        """Make the template from which every trial's work folder is copied."""
        self._template.mkdir()
        if fill is not None:
            fill(self._template)

    def refill(self) -> None:
        """A work folder as it is before the first attempt."""
        shutil.rmtree(self.state, ignore_errors=True)
        shutil.copytree(self._template, self.state, symlinks=True)

    def digests(self, patterns: Sequence[str]) -> dict[str, str]:
        """SHA-256 of every file in the work folder that a pattern matches, by relative path.

        A history is UTF-8 throughout: bytes of a name that are not stand as ``\\xff``.
        """
        found: dict[str, str] = {}
        for pattern in patterns:
            for file in sorted(self.state.glob(pattern)):
                if file.is_file():
                    digest = hashlib.sha256(file.read_bytes()).hexdigest()
                    name = os.fsencode(file.relative_to(self.state).as_posix())
                    found[name.decode(errors="backslashreplace")] = digest
        return found

    def copy_state(self, folder: Path, bytes_max: int) -> bool:
        """Copy the work folder to ``folder``. False, and nothing done, above ``bytes_max``."""
        if _bytes_in(self.state) > bytes_max:
            return False
        shutil.copytree(self.state, folder, symlinks=True, dirs_exist_ok=True, ignore=_not_plain)
        return True

    def remove(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.base, ignore_errors=True)


def _bytes_in(folder: Path) -> int:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())


def _not_plain(folder: str, names: list[str]) -> set[str]:
    """Sockets and pipes cannot be copied."""
    paths = ((name, Path(folder, name)) for name in names)
    return {n for n, p in paths if not (p.is_dir() or p.is_file() or p.is_symlink())}
