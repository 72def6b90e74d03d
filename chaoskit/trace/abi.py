"""State-changing system calls: their numbers, their names in points, and where their targets stand.

A SIGKILL loses a process's memory and nothing else, so what the world can see afterwards is fixed
by the calls listed here that had completed. Numbers: Linux's syscall_64.tbl (x86_64) and
asm-generic/unistd.h (aarch64).
"""

from __future__ import annotations

import platform
import struct
from dataclasses import dataclass
from typing import Literal

Shape = Literal[
    "fd",  # acts on the descriptor in the first argument
    "write",  # the same, and the third argument counts bytes
    "writev",  # the same, and the bytes are counted in vectors
    "out",  # acts on the descriptor in the argument ``at``
    "path",  # the path in the argument ``at``, relative to the working directory
    "at",  # a folder's descriptor in ``at`` and a path in the next one
    "open2",  # the same, and the flags are behind the pointer in the third argument
    "two",  # two paths, in ``at`` and the next one
    "two-at",  # two pairs of folder and path, from ``at`` on
    "connect",  # a socket and an address
    "bind",  # the same, and the address may be a path
    "map",  # a mapping of the descriptor in the fifth argument
    "mapping",  # the file that is mapped at the address in the first argument
    "all",  # everything
]


@dataclass(frozen=True, slots=True)
class Kind:
    """One system call: its name in a point, and how its target is found."""

    name: str
    shape: Shape
    at: int = 0


_KINDS: dict[str, Kind] = {
    "write": Kind("write", "write"),
    "pwrite64": Kind("pwrite", "write"),
    "writev": Kind("writev", "writev"),
    "pwritev": Kind("pwritev", "writev"),
    "pwritev2": Kind("pwritev", "writev"),
    "sendto": Kind("sendto", "write"),
    "sendmsg": Kind("sendmsg", "fd"),
    "sendmmsg": Kind("sendmmsg", "fd"),
    "sendfile": Kind("sendfile", "fd"),
    "splice": Kind("splice", "out", 2),
    "copy_file_range": Kind("copy_file_range", "out", 2),
    "ftruncate": Kind("ftruncate", "fd"),
    "fallocate": Kind("fallocate", "fd"),
    "fsync": Kind("fsync", "fd"),
    "fdatasync": Kind("fdatasync", "fd"),
    "sync_file_range": Kind("sync_file_range", "fd"),
    "syncfs": Kind("syncfs", "fd"),
    "sync": Kind("sync", "all"),
    "msync": Kind("msync", "mapping"),
    "fchmod": Kind("chmod", "fd"),
    "fchown": Kind("chown", "fd"),
    "fsetxattr": Kind("setxattr", "fd"),
    "fremovexattr": Kind("removexattr", "fd"),
    "truncate": Kind("truncate", "path"),
    "open": Kind("open", "path"),
    "creat": Kind("open", "path"),
    "unlink": Kind("unlink", "path"),
    "rmdir": Kind("rmdir", "path"),
    "mkdir": Kind("mkdir", "path"),
    "mknod": Kind("mknod", "path"),
    "chmod": Kind("chmod", "path"),
    "chown": Kind("chown", "path"),
    "lchown": Kind("chown", "path"),
    "setxattr": Kind("setxattr", "path"),
    "lsetxattr": Kind("setxattr", "path"),
    "removexattr": Kind("removexattr", "path"),
    "lremovexattr": Kind("removexattr", "path"),
    "symlink": Kind("symlink", "path", 1),
    "openat": Kind("open", "at"),
    "openat2": Kind("open", "open2"),
    "unlinkat": Kind("unlink", "at"),
    "mkdirat": Kind("mkdir", "at"),
    "mknodat": Kind("mknod", "at"),
    "fchmodat": Kind("chmod", "at"),
    "fchmodat2": Kind("chmod", "at"),
    "fchownat": Kind("chown", "at"),
    "utimensat": Kind("utime", "at"),
    "symlinkat": Kind("symlink", "at", 1),
    "rename": Kind("rename", "two"),
    "link": Kind("link", "two"),
    "renameat": Kind("rename", "two-at"),
    "renameat2": Kind("rename", "two-at"),
    "linkat": Kind("link", "two-at"),
    "connect": Kind("connect", "connect"),
    "bind": Kind("bind", "bind"),
    "mmap": Kind("mmap", "map"),
}

_X86_64 = {
    "write": 1, "open": 2, "mmap": 9, "pwrite64": 18, "writev": 20, "msync": 26, "sendfile": 40,
    "connect": 42, "sendto": 44, "sendmsg": 46, "bind": 49, "fsync": 74, "fdatasync": 75,
    "truncate": 76, "ftruncate": 77, "rename": 82, "mkdir": 83, "rmdir": 84, "creat": 85,
    "link": 86, "unlink": 87, "symlink": 88, "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93,
    "lchown": 94, "mknod": 133,
    "sync": 162, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197,
    "lremovexattr": 198, "fremovexattr": 199, "openat": 257, "mkdirat": 258, "mknodat": 259,
    "fchownat": 260, "unlinkat": 263, "renameat": 264, "linkat": 265, "symlinkat": 266,
    "fchmodat": 268, "splice": 275, "sync_file_range": 277, "utimensat": 280, "fallocate": 285,
    "pwritev": 296, "syncfs": 306, "sendmmsg": 307, "renameat2": 316, "copy_file_range": 326,
    "pwritev2": 328, "openat2": 437, "fchmodat2": 452,
    "nanosleep": 35, "clock_nanosleep": 230, "io_uring_setup": 425,
    "gettimeofday": 96, "time": 201, "futex": 202, "timer_settime": 223, "clock_gettime": 228,
    "mq_timedsend": 242, "mq_timedreceive": 243, "timerfd_settime": 286, "futex_waitv": 449,
    "futex_wait": 455,
    "socket": 41, "mprotect": 10, "pkey_mprotect": 329,
    "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240,
}  # fmt: skip

_AARCH64 = {
    "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15,
    "fremovexattr": 16, "mknodat": 33, "mkdirat": 34, "unlinkat": 35, "symlinkat": 36, "linkat": 37,
    "renameat": 38, "truncate": 45, "ftruncate": 46, "fallocate": 47, "fchmod": 52, "fchmodat": 53,
    "fchownat": 54, "fchown": 55, "openat": 56, "write": 64, "writev": 66, "pwrite64": 68,
    "pwritev": 70, "sendfile": 71, "splice": 76, "sync": 81, "fsync": 82, "fdatasync": 83,
    "sync_file_range": 84, "utimensat": 88, "bind": 200, "connect": 203, "sendto": 206,
    "sendmsg": 211, "mmap": 222, "msync": 227, "syncfs": 267, "sendmmsg": 269, "renameat2": 276,
    "copy_file_range": 285, "pwritev2": 287, "openat2": 437, "fchmodat2": 452,
    "nanosleep": 101, "clock_nanosleep": 115, "io_uring_setup": 425,
    "timerfd_settime": 86, "futex": 98, "timer_settime": 110, "clock_gettime": 113,
    "gettimeofday": 169, "mq_timedsend": 182, "mq_timedreceive": 183, "futex_waitv": 449,
    "futex_wait": 455,
    "socket": 198, "mprotect": 226, "pkey_mprotect": 288,
    "shmget": 194, "semget": 190, "msgget": 186, "mq_open": 180,
}  # fmt: skip

SYNCS = frozenset({"fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync"})
"""Calls that change nothing that a SIGKILL could lose, only what a power cut could."""

WRITES = frozenset({"write", "pwrite", "writev", "pwritev"})


@dataclass(frozen=True, slots=True, eq=False)
class Abi:
    """What differs between machines.

    Args:
        audit: how the kernel names the architecture to a seccomp filter.
        numbers: of every call that matters, by its kernel name.
        arguments: which 64-bit words of the general registers hold a call's arguments.
        number: which one holds its number, before it is made.
        entered: which one holds it at the stop before it is made; None: one of its own.
        result: which one holds what it returned.
        pointer: which one holds the address of the next instruction.
        instruction: the bytes of the instruction that makes a call.
        words: how many such words there are.
        plain: the code of a function that makes a call: the bytes before the four that hold its
            number, what else stands in these, how far to the left the number does, and the rest.
    """

    audit: int
    numbers: dict[str, int]
    arguments: tuple[int, ...]
    number: int
    entered: int | None
    result: int
    pointer: int
    instruction: int
    words: int
    plain: tuple[bytes, int, int, bytes]

    def plain_call(self, number: int) -> bytes:
        """The code of a function that makes the call ``number``, and no more."""
        before, base, shift, after = self.plain
        return before + struct.pack("<I", base | number << shift) + after

    def kinds(self) -> dict[int, Kind]:
        """The state-changing calls of this machine by number."""
        return {self.numbers[name]: kind for name, kind in _KINDS.items() if name in self.numbers}


ABIS: dict[str, Abi] = {
    "x86_64": Abi(
        audit=0xC000003E,
        numbers=_X86_64,
        arguments=(14, 13, 12, 7, 9, 8),
        number=10,
        entered=15,
        result=10,
        pointer=16,
        instruction=2,
        words=27,
        plain=(b"\xb8", 0, 0, b"\x0f\x05\xc3"),  # mov eax, NUMBER; syscall; ret
    ),
    "aarch64": Abi(
        audit=0xC00000B7,
        numbers=_AARCH64,
        arguments=(0, 1, 2, 3, 4, 5),
        number=8,
        entered=None,
        result=0,
        pointer=32,
        instruction=4,
        words=34,
        # mov x8, #NUMBER; svc #0; ret
        plain=(b"", 0xD2800008, 5, b"\x01\x00\x00\xd4\xc0\x03\x5f\xd6"),
    ),
}


NO_TABLES = "system calls are traced on Linux on x86_64 and aarch64 only"


def this_abi() -> Abi | None:
    """The tables of this machine; None where there are none (another architecture or system)."""
    if platform.system() != "Linux":
        return None
    return ABIS.get(platform.machine())
