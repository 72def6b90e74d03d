"""The files that chaoskit writes for its user: looked at before a campaign, written after it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from chaoskit.model.errors import UsageError, naming

_PROBE_BYTES = 4096
"""So much is written to see whether there is room at all."""

CANNOT = "cannot be written"


def check_file(path: Path) -> None:
    """See that ``path`` can be written, by doing it where nothing is lost by that.

    A folder of it that is not there is made; nothing else stays.

    Raises:
        UsageError: it cannot.
    """
    with naming(path, CANNOT):
        there = _mode(path)
    if there is not None and stat.S_ISDIR(there):
        raise UsageError(f"{path} is a folder: name a file in it")
    if there is None:
        check_folder(path.parent)
        with naming(path, CANNOT):
            _write_and_remove(Path(os.path.realpath(path)))
    elif stat.S_ISREG(there):
        with naming(path, CANNOT):
            os.close(os.open(path, os.O_WRONLY))
    elif not os.access(path, os.W_OK):  # a pipe or a device is not touched before it is needed
        raise UsageError(f"{path} {CANNOT}: permission denied")


def check_folder(folder: Path) -> None:
    """See that files can be made in ``folder``, which is made if it is not there.

    Raises:
        UsageError: they cannot.
    """
    with naming(folder, "cannot be made"):
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} is a file: name a folder")
        folder.mkdir(parents=True, exist_ok=True)
    with naming(folder, "cannot be written to"):
        _write_and_remove(folder / f".chaoskit-{os.getpid()}")


def write_text(path: Path, text: str, *, new: bool = False) -> None:
    """Write ``text`` to ``path`` in UTF-8, whole or not at all; folders are made.

    Args:
        path: where to. What is there is written over.
        text: the whole content.
        new: a file that is there already is left alone.

    Raises:
        UsageError: it cannot be written, or is there and must not be.
    """
    data = text.encode()
    with naming(path, CANNOT):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | (os.O_EXCL if new else 0), 0o666)
        with _nothing_in_part(path), open(descriptor, "wb", buffering=0) as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.ftruncate(descriptor, 0)
            while data:
                data = data[file.write(data) :]


@contextmanager
def _nothing_in_part(path: Path) -> Iterator[None]:
    """A report that ends in its middle is worse than none."""
    try:
        yield
    except BaseException:
        if path.is_file():
            with suppress(OSError):
                path.unlink()
        raise


def _mode(path: Path) -> int | None:
    """What ``path`` is, None if it is not there."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _write_and_remove(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, bytes(_PROBE_BYTES))
    finally:
        os.close(descriptor)
        os.unlink(path)
