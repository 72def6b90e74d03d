"""The seccomp filter: which calls the kernel stops for the tracer, and which it answers itself.

Everything else runs at full speed. Opening a file stops only where that creates or truncates one,
mapping one only where it is shared, changing a mapping only where stores into it become possible,
so that a program's start-up stops next to nowhere.
"""

from __future__ import annotations

import ctypes
import os
import struct
from functools import lru_cache

from chaoskit.trace.abi import Abi

FOREIGN = 0x0F0F
"""What the filter tells the tracer of a call by another architecture's table (i386, x32)."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_AND = 0x54
_ALLOW, _TRACE, _ERRNO = 0x7FFF0000, 0x7FF00000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_X32_BIT = 0x40000000

CREATES = 0o100 | 0o1000 | 0o20000000
"""O_CREAT, O_TRUNC and the bit of O_TMPFILE that is not O_DIRECTORY."""

_PROT_WRITE, _MAP_SHARED, _NO_STREAM = 2, 1, 2
"""Bits; the last one is in every type of socket that is no stream (SOCK_DGRAM, SOCK_RAW)."""

REACHES = ("connect", "sendto", "sendmsg", "sendmmsg")
"""The calls by which a task reaches somebody."""

_WALL_CLOCKS = (0, 5, 8, 11)
"""CLOCK_REALTIME, its coarse and its alarm sort, and CLOCK_TAI."""

_ABSOLUTE = 1
"""TIMER_ABSTIME and TFD_TIMER_ABSTIME: a time of day, and no span."""

_FUTEX_REALTIME, _FUTEX_COMMAND, _FUTEX_LOCK_PI = 256, 0x7F, 6

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2


_PROTECTS = ("mprotect", "pkey_mprotect")
_SHARES = (
    ("shmget", 2, 0o1000),
    ("semget", 2, 0o1000),
    ("msgget", 1, 0o1000),
    ("mq_open", 1, 0o100),
)
"""The argument with the bit that makes a new object."""

_ASIDE = (*_PROTECTS, *(name for name, _, _ in _SHARES))
"""Calls that are no points, and are looked at."""

_BY_A_BIT = (
    ("open", 1, CREATES),
    ("openat", 2, CREATES),
    ("mmap", 3, _MAP_SHARED),
    *((name, 2, _PROT_WRITE) for name in _PROTECTS),
    *_SHARES,
)
"""Calls that matter where an argument has one of some bits."""


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _argument(number: int) -> bytes:
    """Load the low half of an argument; both architectures are little-endian."""
    return _op(_LOAD, _ARGUMENTS + 8 * number)


def program(
    abi: Abi,
    *,
    changes: bool = True,
    light: bool = False,
    skip_sleeps: bool = False,
    clock: bool = False,
) -> bytes:
    """The filter as the kernel takes it: a sequence of ``struct sock_filter``.

    Args:
        abi: of the machine.
        changes: stop at calls that change something.
        skip_sleeps: answer nanosleep and clock_nanosleep with success at once.
        light: of these, stop only where the task reaches for somebody, or for a ring.
        clock: stop at calls that read the time of day, or wait for one.
    """
    numbers = abi.numbers
    code = [
        _op(_LOAD, _ARCHITECTURE),
        _op(_EQUAL, abi.audit, 1, 0),
        _op(_RETURN, _TRACE | FOREIGN),
        _op(_LOAD, _NUMBER),
        _op(_AT_LEAST, _X32_BIT, 0, 1),
        _op(_RETURN, _TRACE | FOREIGN),
    ]
    if skip_sleeps:
        for name in ("nanosleep", "clock_nanosleep"):
            code += _when(numbers[name], [_op(_RETURN, _ERRNO)])
    if clock:
        code += _clock(abi)
    if changes:
        code += _changes(abi, light=light)
    code.append(_op(_RETURN, _ALLOW))
    return b"".join(code)


def _changes(abi: Abi, *, light: bool) -> list[bytes]:
    numbers = abi.numbers
    counts = {numbers[name] for name in REACHES} if light else set(abi.kinds())
    code = []
    for name, at, bits in _BY_A_BIT:
        if numbers.get(name) in counts or (name in _ASIDE and not light):
            code += _when(numbers[name], [_argument(at), *_if_any(bits)])
    code += _when(numbers["socket"], [_argument(1), *_if_any(_NO_STREAM)])
    code += _when(numbers["io_uring_setup"], [_op(_RETURN, _TRACE)])
    special = {numbers[name] for name, _, _ in _BY_A_BIT if name in numbers}
    for number in sorted(counts - special):
        code += _when(number, [_op(_RETURN, _TRACE)])
    return code


def _clock(abi: Abi) -> list[bytes]:
    """Reads of the time of day, and waits for one; what the monotonic clocks say is no matter."""
    absolute = [_argument(1), _op(_ANY_BIT, _ABSOLUTE, 1, 0), _op(_RETURN, _ALLOW)]
    stop = [_op(_RETURN, _TRACE)]
    then = {
        "clock_gettime": _if_wall_clock(0),
        "gettimeofday": stop,
        "time": stop,
        "clock_nanosleep": absolute + _if_wall_clock(0),
        "timer_settime": absolute + stop,
        "timerfd_settime": absolute + stop,
        "futex": [
            _argument(1),
            _op(_ANY_BIT, _FUTEX_REALTIME, 2, 0),
            _op(_AND, _FUTEX_COMMAND),
            _op(_EQUAL, _FUTEX_LOCK_PI, 0, 1),
            *stop,
            _op(_RETURN, _ALLOW),
        ],
        "futex_waitv": _if_wall_clock(4),
        "futex_wait": _if_wall_clock(5),
        "mq_timedsend": stop,
        "mq_timedreceive": stop,
    }
    code = []
    for name, ops in then.items():
        if name in abi.numbers:
            code += _when(abi.numbers[name], ops)
    return code


def _if_wall_clock(at: int) -> list[bytes]:
    """Stop where the argument ``at`` is a clock that tells the time of day."""
    tests = [
        _op(_EQUAL, clock, len(_WALL_CLOCKS) - place) for place, clock in enumerate(_WALL_CLOCKS)
    ]
    return [_argument(at), *tests, _op(_RETURN, _ALLOW), _op(_RETURN, _TRACE)]


def _when(number: int, then: list[bytes]) -> list[bytes]:
    """``then`` for one call. Every branch of it returns, so what follows sees the number still."""
    return [_op(_EQUAL, number, 0, len(then)), *then]


def _if_any(bits: int) -> list[bytes]:
    return [_op(_ANY_BIT, bits, 0, 1), _op(_RETURN, _TRACE), _op(_RETURN, _ALLOW)]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def install(code: bytes) -> None:
    """Put this process, and all that it starts from now on, under the filter; for good.

    Raises:
        OSError: the kernel refuses it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(code, len(code))
    filters = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    _check(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _check(libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(filters), 0, 0))


@lru_cache(maxsize=1)
def works() -> bool:
    """Whether the kernel takes a filter; a child tries it out, once."""
    pid = os.fork()
    if pid == 0:
        try:
            install(_op(_RETURN, _ALLOW))
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


def _check(result: int) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, "the kernel refuses a seccomp filter")
