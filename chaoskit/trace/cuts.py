"""Where a SIGKILL can cut a call that writes into a file.

The kernel copies a write into the file's pages one after the other, and looks for a fatal signal
before each of them (generic_perform_write in mm/filemap.c). So a write can be cut where it crosses
a boundary of the file's pages, however small it is, and nowhere else.
"""

from __future__ import annotations

import mmap
import os
import stat
import struct
from dataclasses import dataclass

from chaoskit.trace import ptrace
from chaoskit.trace.abi import Kind
from chaoskit.trace.ptrace import Entered

_O_APPEND = 0o2000
"""The same number on x86_64 and aarch64."""

_NO_PLACE = (1 << 64) - 1
"""What pwritev2 takes for "where the descriptor stands"."""

_VECTOR = struct.Struct("=QQ")
_VECTORS_MAX = 1024


@dataclass(frozen=True, slots=True)
class Extent:
    """The bytes of a file that a call would write: ``size`` of them, from ``start`` on."""

    start: int
    size: int


def cuts_of(tid: int, kind: Kind, call: Entered) -> tuple[int, ...]:
    """How many bytes of a call can be all that a kill leaves; see `boundaries`."""
    found = extent_of(tid, kind, call)
    return () if found is None else boundaries(found)


def boundaries(extent: Extent, page: int = mmap.PAGESIZE) -> tuple[int, ...]:
    """The lengths at which a write ends with a page of the file: of many the first, a middle one
    and the last.
    """
    first = page - extent.start % page
    if first >= extent.size:
        return ()
    last = first + (extent.size - first - 1) // page * page
    middle = first + (last - first) // 2 // page * page
    return tuple(sorted({first, middle, last}))


def extent_of(tid: int, kind: Kind, call: Entered) -> Extent | None:
    """Where in a regular file a call writes; None for all else that a call can write to."""
    words = call.arguments
    descriptor, size, place = words[0], words[2], None
    match kind.name:
        case "write":
            pass
        case "pwrite":
            place = words[3]
        case "writev":
            size = _total(vectors(tid, call))
        case "pwritev":
            size = _total(vectors(tid, call))
            place = None if words[3] == _NO_PLACE else words[3]
        case "sendfile":
            size = min(words[3], _left(tid, words[1], words[2]))
        case "copy_file_range":
            descriptor, size = words[2], min(words[4], _left(tid, words[0], words[1]))
            place = _behind(tid, words[3])
        case _:
            return None
    return _extent(tid, descriptor, size, place)


def vectors(tid: int, call: Entered) -> tuple[tuple[int, int], ...]:
    """The buffers of writev and its kin: address and length of each."""
    count = min(call.arguments[2], _VECTORS_MAX)
    raw = ptrace.memory(tid, call.arguments[1], count * _VECTOR.size)
    return tuple(_VECTOR.iter_unpack(raw)) if len(raw) == count * _VECTOR.size else ()


def _total(buffers: tuple[tuple[int, int], ...]) -> int:
    return sum(length for _, length in buffers)


def _extent(tid: int, descriptor: int, size: int, place: int | None) -> Extent | None:
    status = _regular(tid, descriptor)
    if status is None:
        return None
    position, flags = _stands(tid, descriptor)
    if flags & _O_APPEND:  # pwrite appends then, too
        return Extent(status.st_size, size)
    return Extent(position if place is None else place, size)


def _left(tid: int, descriptor: int, place_at: int) -> int:
    """How much can be read from a file; 0 from what is none."""
    status = _regular(tid, descriptor)
    if status is None:
        return 0
    place = _behind(tid, place_at)
    return max(status.st_size - (_stands(tid, descriptor)[0] if place is None else place), 0)


def _behind(tid: int, pointer: int) -> int | None:
    """The place in a file that stands behind a pointer; None where there is no pointer."""
    raw = ptrace.memory(tid, pointer, 8) if pointer else b""
    return int.from_bytes(raw, "little") if len(raw) == 8 else None


def _regular(tid: int, descriptor: int) -> os.stat_result | None:
    try:
        status = os.stat(f"/proc/{tid}/fd/{descriptor & 0xFFFFFFFF}")
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _stands(tid: int, descriptor: int) -> tuple[int, int]:
    """Where a descriptor stands in its file, and its flags."""
    found = {"pos": "0", "flags": "0"}
    try:
        with open(f"/proc/{tid}/fdinfo/{descriptor & 0xFFFFFFFF}", encoding="ascii") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if name in found:
                    found[name] = value.strip()
    except OSError:
        pass
    return int(found["pos"]), int(found["flags"], 8)
