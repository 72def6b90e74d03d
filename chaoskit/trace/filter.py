"""The seccomp filter: which calls the kernel stops for the tracer, and which it answers itself.

Everything else runs at full speed. Opening a file stops only where that creates or truncates one,
mapping one only where stores into it change the file, so that a program's start-up stops nowhere.
"""

from __future__ import annotations

import ctypes
import struct

from chaoskit.trace.abi import Abi

FOREIGN = 0x0F0F
"""What the filter tells the tracer of a call by another architecture's table (i386, x32)."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_AND = 0x54
_ALLOW, _TRACE, _ERRNO = 0x7FFF0000, 0x7FF00000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_X32_BIT = 0x40000000
_ENOSYS = 38

CREATES = 0o100 | 0o1000 | 0o20000000
"""O_CREAT, O_TRUNC and the bit of O_TMPFILE that is not O_DIRECTORY."""

_PROT_WRITE, _MAP_SHARED = 2, 1

_WALL_CLOCKS = (0, 5, 8, 11)
"""CLOCK_REALTIME, its coarse and its alarm sort, and CLOCK_TAI."""

_ABSOLUTE = 1
"""TIMER_ABSTIME and TFD_TIMER_ABSTIME: a time of day, and no span."""

_FUTEX_REALTIME, _FUTEX_COMMAND, _FUTEX_LOCK_PI = 256, 0x7F, 6

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _argument(number: int) -> bytes:
    """Load the low half of an argument; both architectures are little-endian."""
    return _op(_LOAD, _ARGUMENTS + 8 * number)


def program(
    abi: Abi, *, changes: bool = True, skip_sleeps: bool = False, clock: bool = False
) -> bytes:
    """The filter as the kernel takes it: a sequence of ``struct sock_filter``.

    Args:
        abi: of the machine.
        changes: stop at calls that change something.
        skip_sleeps: answer nanosleep and clock_nanosleep with success at once.
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
        code += _changes(abi)
    code.append(_op(_RETURN, _ALLOW))
    return b"".join(code)


def _changes(abi: Abi) -> list[bytes]:
    numbers = abi.numbers
    code = []
    for name, flags_at in (("open", 1), ("openat", 2)):
        if name in numbers:
            code += _when(numbers[name], [_argument(flags_at), *_if_any(CREATES)])
    writable = [_argument(2), _op(_ANY_BIT, _PROT_WRITE, 1, 0), _op(_RETURN, _ALLOW)]
    shared = [_argument(3), *_if_any(_MAP_SHARED)]
    code += _when(numbers["mmap"], writable + shared)
    # A ring would make changes without calls; libraries go back to calls where there is none.
    code += _when(numbers["io_uring_setup"], [_op(_RETURN, _ERRNO | _ENOSYS)])
    special = {numbers[name] for name in ("open", "openat", "mmap") if name in numbers}
    for number in sorted(set(abi.kinds()) - special):
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


def _check(result: int) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, "the kernel refuses a seccomp filter")
