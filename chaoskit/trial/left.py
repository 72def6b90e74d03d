"""What a task that never came to its end has left: the few files that may say why."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import psutil

from chaoskit.model.events import FileLeft
from chaoskit.model.history import History
from chaoskit.model.last_words import is_lock, names, telling_line
from chaoskit.model.secrets import without_secrets
from chaoskit.trial.workspace import Workspace

FILES_MOST = 3
HEAD_CHARACTERS = 64

_READ_BYTES = 4096
"""So much of a file is read: a credential that is cut off has no shape by which it is known."""

_WHOLE_BYTES = 64 * 1024
"""A larger file is not parsed."""

_LOOKED_AT_MOST = 2_000

_PID = re.compile(
    rb"\s*(\d{1,10})\s*\Z|.{0,40}?\bpid\W{1,4}(\d{1,10})\b", re.DOTALL | re.IGNORECASE
)
"""A number alone, or one that is called pid."""


def left_behind(workspace: Workspace, history: History) -> dict[str, FileLeft]:
    """Files that may say why no attempt succeeded, by path in the work folder: locks, files that
    the last words name, and files that are empty or no JSON although they are called so. None where
    the task came to a legal end.
    """
    if history.completed or history.may_end_so:
        return {}
    said = [telling_line(body.output_tail) for _, body in history.attempts if body.how == "exit"]
    found = sorted(_ranked(workspace, said))[:FILES_MOST]
    return {shown: _look(shown, path) for _, shown, path in found}


def _ranked(workspace: Workspace, said: Sequence[str]) -> Iterator[tuple[int, str, Path]]:
    """The files to look at, those first that say most."""
    areas = {workspace.written: "", workspace.state: "state:"}
    areas[workspace.written] = ""  # where the two are one, it is the task's folder
    for area, start in areas.items():
        for path in islice(_files(area), _LOOKED_AT_MOST):
            name = path.relative_to(area).as_posix()
            shown = os.fsencode(start + name).decode(errors="backslashreplace")
            if is_lock(name):
                yield 0, shown, path
            elif any(names(words, name) for words in said):
                yield 1, shown, path
            elif not _whole(path):
                yield 2, shown, path


def _files(area: Path) -> Iterator[Path]:
    for folder, _, files in os.walk(area):
        paths = (Path(folder, name) for name in files)
        yield from (
            p for p in paths if not p.is_symlink() and p.is_file() and os.access(p, os.R_OK)
        )


def _whole(path: Path) -> bool:
    """Whether a file has any content, and is JSON where it is called so."""
    size = path.stat().st_size
    if path.suffix != ".json" or not 0 < size <= _WHOLE_BYTES:
        return size > 0
    try:
        json.loads(path.read_bytes())
    except ValueError:
        return False
    return True


def _look(name: str, path: Path) -> FileLeft:
    with path.open("rb") as file:
        begins = file.read(_READ_BYTES)
    owner = _PID.match(begins) if is_lock(name) else None
    pid = int(owner[1] or owner[2]) if owner is not None else 0
    head = without_secrets(begins.decode(errors="backslashreplace"))[:HEAD_CHARACTERS]
    return FileLeft(path.stat().st_size, head, pid, pid > 0 and psutil.pid_exists(pid))
