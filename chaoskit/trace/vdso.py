"""The vDSO: the kernel's code in every process that tells the time without a system call.

A filter cannot see such a read. `hide` replaces the code by plain calls, in one process: what forks
off it inherits them, and a program that it executes has a vDSO of its own.
"""

from __future__ import annotations

import os
import struct
from functools import lru_cache
from typing import NamedTuple

from chaoskit.trace import ptrace
from chaoskit.trace.abi import Abi

_AT_SYSINFO_EHDR = 33
_IMAGE_MAX = 1 << 16
_DYNSYM = 11
_HEADER, _SECTION, _SYMBOL = "=16sHHIQQQIHHHHHH", "=IIQQQQIIQQ", "=IBBHQQ"


class _Patch(NamedTuple):
    """What is written, so far behind the beginning of the vDSO."""

    offset: int
    code: bytes


def hide(pid: int, abi: Abi) -> None:
    """Let every function of ``pid``'s vDSO that tells the time make its call.

    Nothing is done where there is no vDSO, or one of another architecture.

    Raises:
        OSError: the kernel does not let us write there.
    """
    base = _base(pid)
    if base:
        for patch in _patches(abi):
            ptrace.store(pid, base + patch.offset, patch.code)


def _base(pid: int) -> int:
    with open(f"/proc/{pid}/auxv", "rb") as file:
        words = file.read()
    words = words[: len(words) // 16 * 16]
    return next((v for key, v in struct.iter_unpack("=QQ", words) if key == _AT_SYSINFO_EHDR), 0)


@lru_cache(maxsize=1)
def _patches(abi: Abi) -> tuple[_Patch, ...]:
    """For the vDSO of this machine's own architecture: it is the same in each process."""
    image = ptrace.memory(os.getpid(), _base(os.getpid()), _IMAGE_MAX)
    found = set()  # some functions have several names
    for name, at, size in _functions(image):
        call = name.removeprefix("__vdso_").removeprefix("__kernel_")
        if call not in _TELLS or call not in abi.numbers:
            continue
        code = abi.plain_call(abi.numbers[call])
        if size >= len(code):
            found.add(_Patch(at, code))
    return tuple(found)


_TELLS = frozenset({"clock_gettime", "gettimeofday", "time"})


def _functions(image: bytes) -> list[tuple[str, int, int]]:
    """Name, offset and size of each function in an ELF image; none where it is no such image."""
    if image[:5] != b"\x7fELF\x02":
        return []
    *_, sections_at, _, _, _, _, size, number, _ = struct.unpack_from(_HEADER, image)
    sections = [
        struct.unpack_from(_SECTION, image, sections_at + size * index) for index in range(number)
    ]
    found = []
    for section in sections:
        _, kind, _, _, at, length, names, *_ = section
        if kind != _DYNSYM:
            continue
        names_at = sections[names][4]
        for place in range(at, at + length, struct.calcsize(_SYMBOL)):
            name, _, _, _, value, extent = struct.unpack_from(_SYMBOL, image, place)
            start = names_at + name
            found.append((image[start : image.index(b"\0", start)].decode(), value, extent))
    return found
