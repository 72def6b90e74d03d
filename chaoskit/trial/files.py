"""Files as they are: read and written with all that a SIGKILL leaves of them.

Exact here: type, mode, owner, content with its holes, link count among the files that are looked
at, extended attributes, and modification time to the nanosecond. Not kept, because the kernel sets
them itself: inode numbers, change times, access times and birth times.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress

_CHUNK_BYTES = 1 << 20

_KEPT = ("user.", "trusted.", "system.posix_acl_", "security.capability")
"""Extended attributes that a program, or its user, sets."""

_DRAWN = ".overlay.uuid"
"""Each mount of an overlay draws one anew for its topmost folder."""

Segment = tuple[int, bytes]
"""Where some bytes of a file stand, and the bytes."""


def segments(path: str) -> Iterator[Segment]:
    """The data of a regular file; what lies between the pieces are holes.

    Raises:
        OSError: it cannot be read.
    """
    with lent(path, os.lstat(path).st_mode):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        at = 0
        while at < size:
            start, end = _next_data(descriptor, at, size)
            if start < end:
                yield start, _read(descriptor, start, end)
            at = end
    finally:
        os.close(descriptor)


def _next_data(descriptor: int, at: int, size: int) -> tuple[int, int]:
    """Where the next data stand; a file system without holes says that all of it are data."""
    try:
        start = os.lseek(descriptor, at, os.SEEK_DATA)
        return start, min(size, os.lseek(descriptor, start, os.SEEK_HOLE))
    except OSError as none:
        return (size, size) if none.errno == errno.ENXIO else (at, size)


def _read(descriptor: int, start: int, end: int) -> bytes:
    pieces = []
    while start < end:
        piece = os.pread(descriptor, min(_CHUNK_BYTES, end - start), start)
        if not piece:
            break
        pieces.append(piece)
        start += len(piece)
    return b"".join(pieces)


def write_segments(path: str, size: int, pieces: Iterable[Segment]) -> None:
    """Make a new regular file with holes where no piece is."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        for at, piece in pieces:
            done = 0
            while done < len(piece):
                done += os.pwrite(descriptor, memoryview(piece)[done:], at + done)
        if os.fstat(descriptor).st_size != size:
            os.ftruncate(descriptor, size)
    finally:
        os.close(descriptor)


def attributes(path: str, mode: int) -> tuple[tuple[str, bytes], ...]:
    """The extended attributes of a file that belong to it, and not to a security module of the
    machine, sorted by name; none where there are no such things.
    """
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except OSError:
        return ()
    kept = sorted(n for n in names if n.startswith(_KEPT) and not n.endswith(_DRAWN))
    # Only who may read a file can read what users have set on it, and only these have user's.
    readable = kept and (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    found = []
    with lent(path, mode) if readable else nullcontext():
        for name in kept:
            with suppress(OSError):
                found.append((name, os.getxattr(path, name, follow_symlinks=False)))
    return tuple(found)


def make_special(path: str, mode: int, device: int) -> None:
    """Make a pipe, a socket without a process behind it, or a device, as a kill leaves it.

    Raises:
        OSError: a device cannot be made by this user.
    """
    if stat.S_ISFIFO(mode):
        os.mkfifo(path, 0o600)
    else:
        os.mknod(path, stat.S_IFMT(mode) | 0o600, device)


def dress(
    path: str, mode: int, owner: tuple[int, int], extras: Iterable[tuple[str, bytes]]
) -> None:
    """Give a file its owner, mode and extended attributes."""
    there = os.lstat(path)
    if (there.st_uid, there.st_gid) != owner:
        os.chown(path, *owner, follow_symlinks=False)
    for name, value in extras:
        os.setxattr(path, name, value, follow_symlinks=False)
    if not stat.S_ISLNK(mode) and stat.S_IMODE(there.st_mode) != stat.S_IMODE(mode):
        os.chmod(path, stat.S_IMODE(mode))


def stamp(path: str, mtime_ns: int) -> None:
    """Give a file its modification time."""
    os.utime(path, ns=(mtime_ns, mtime_ns), follow_symlinks=False)


@contextmanager
def lent(path: str, mode: int) -> Iterator[None]:
    """Lend the owner the rights that a file's own ``mode`` does not give him; root needs none."""
    wanted = stat.S_IMODE(mode) | (0o700 if stat.S_ISDIR(mode) else 0o400)
    if os.geteuid() == 0 or stat.S_IMODE(mode) == wanted:
        yield
        return
    os.chmod(path, wanted)
    try:
        yield
    finally:
        os.chmod(path, stat.S_IMODE(mode))


def remove(path: str) -> None:
    """Remove a file or a whole folder, whatever the modes in it are; it may be gone already.

    Raises:
        OSError: it cannot be removed.
    """
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(mode):
        os.unlink(path)
        return
    if mode & 0o700 != 0o700:
        os.chmod(path, 0o700)
    with os.scandir(path) as entries:
        inside = [entry.path for entry in entries]
    for child in inside:
        remove(child)
    os.rmdir(path)
