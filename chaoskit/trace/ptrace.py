"""The few requests of ptrace(2) that the tracer makes, by ctypes."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from chaoskit.trace.abi import Abi

_SEIZE, _INTERRUPT, _LISTEN = 0x4206, 0x4207, 0x4208
_CONT, _SYSCALL = 7, 24
_GETREGSET, _SETREGSET = 0x4204, 0x4205
_GETEVENTMSG = 0x4201
_GET_SYSCALL_INFO = 0x420E
_PRSTATUS, _ARM_SYSTEM_CALL = 1, 0x404

_OPTIONS = (
    0x1  # TRACESYSGOOD: a call's own stop is told from a SIGTRAP
    | 0x2  # TRACEFORK
    | 0x4  # TRACEVFORK
    | 0x8  # TRACECLONE
    | 0x10  # TRACEEXEC
    | 0x20  # TRACEVFORKDONE
    | 0x80  # TRACESECCOMP
    | 0x100000  # EXITKILL: the tree goes when the tracer goes
)

FORK, VFORK, CLONE, EXEC, VFORK_DONE, SECCOMP, STOP = 1, 2, 3, 4, 5, 7, 128
"""The events in the upper half of a stop's status."""

WALL = 0x40000000
"""The option of waitpid that includes threads."""

_INFO_BYTES = 88
_ENTRY, _EXIT, _SECCOMP_OP = 1, 2, 3

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_ptrace = getattr(_libc, "ptrace", None)
if _ptrace is not None:
    _ptrace.restype = ctypes.c_long
    _ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)


@dataclass(frozen=True, slots=True)
class Entered:
    """A call that a thread is about to make. ``data`` is what the filter said of it; ``pointer``
    is the address of the instruction after it; ``stack`` that of the stack's end.
    """

    number: int
    arguments: tuple[int, ...]
    data: int
    pointer: int = 0
    stack: int = 0


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _request(request: int, tid: int, address: int = 0, data: int = 0) -> int:
    """One request.

    Raises:
        ProcessLookupError: the thread is dead, or not stopped.
        OSError: the kernel refuses it.
    """
    if _ptrace is None:
        raise OSError("this system has no ptrace")
    result = int(_ptrace(request, tid, address, data))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def seize(pid: int) -> None:
    """Trace the child ``pid`` from now on; it is not stopped."""
    _request(_SEIZE, pid, 0, _OPTIONS)


def interrupt(tid: int) -> None:
    """Let a running thread stop as soon as it can."""
    _request(_INTERRUPT, tid)


def listen(tid: int) -> None:
    """Let a thread that SIGSTOP stopped stay so, and tell us of what comes."""
    _request(_LISTEN, tid)


def go_on(tid: int, signal: int = 0) -> None:
    """Let a stopped thread run, with ``signal`` if there is one for it."""
    _request(_CONT, tid, 0, signal)


def finish_call(tid: int) -> None:
    """Let a thread that is about to make a call make it, and stop when that is done."""
    _request(_SYSCALL, tid)


def event_message(tid: int) -> int:
    """What an event is about: the new thread's id."""
    message = ctypes.c_ulong()
    _request(_GETEVENTMSG, tid, 0, ctypes.addressof(message))
    return int(message.value)


_info = ctypes.create_string_buffer(_INFO_BYTES)


def entered(tid: int) -> Entered | None:
    """The call at whose entry a thread stands."""
    size = _request(_GET_SYSCALL_INFO, tid, _INFO_BYTES, ctypes.addressof(_info))
    if size <= 0 or _info.raw[0] not in {_ENTRY, _SECCOMP_OP}:
        return None
    number, *arguments = struct.unpack_from("=Q6Q", _info.raw, 24)
    (data,) = struct.unpack_from("=I", _info.raw, 80) if _info.raw[0] == _SECCOMP_OP else (0,)
    pointer, stack = struct.unpack_from("=QQ", _info.raw, 8)
    return Entered(number & 0xFFFFFFFF, tuple(arguments), data, pointer, stack)


def result(tid: int) -> int:
    """What the call returned at whose exit a thread stands; a negative error number if it failed.

    0 where the kernel does not say.
    """
    size = _request(_GET_SYSCALL_INFO, tid, _INFO_BYTES, ctypes.addressof(_info))
    if size <= 0 or _info.raw[0] != _EXIT:
        return 0
    (value,) = struct.unpack_from("=q", _info.raw, 24)
    return int(value)


def set_words(tid: int, words: int, values: Mapping[int, int]) -> None:
    """Change some of the ``words`` 64-bit words of a stopped thread's general registers."""
    registers = (ctypes.c_uint64 * words)()
    vector = _Vector(ctypes.addressof(registers), ctypes.sizeof(registers))
    _request(_GETREGSET, tid, _PRSTATUS, ctypes.addressof(vector))
    for word, value in values.items():
        registers[word] = value % (1 << 64)
    _request(_SETREGSET, tid, _PRSTATUS, ctypes.addressof(vector))


def skip_call(tid: int, abi: Abi, result: int) -> None:
    """Let a thread that stands before a call not make it, and find ``result`` as what it returned.

    On aarch64 the number has a register set of its own; that was not run.
    """
    if abi.entered is None:
        number = ctypes.c_int(-1)
        vector = _Vector(ctypes.addressof(number), ctypes.sizeof(number))
        _request(_SETREGSET, tid, _ARM_SYSTEM_CALL, ctypes.addressof(vector))
        set_words(tid, abi.words, {abi.result: result})
    else:
        set_words(tid, abi.words, {abi.entered: -1, abi.result: result})


def memory(tid: int, address: int, size: int) -> bytes:
    """Up to ``size`` bytes of a stopped thread's memory; fewer where a page is missing."""
    try:
        handle = os.open(f"/proc/{tid}/mem", os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.pread(handle, size, address)
    except (OSError, OverflowError):
        return b""
    finally:
        os.close(handle)


def store(tid: int, address: int, content: bytes) -> None:
    """Write into a thread's memory, where the thread itself may not, too.

    Raises:
        OSError: there is no such page, or the kernel does not let us.
    """
    handle = os.open(f"/proc/{tid}/mem", os.O_WRONLY)
    try:
        os.pwrite(handle, content, address)
    finally:
        os.close(handle)


def set_memory(tid: int, address: int, content: bytes) -> bool:
    """Change a stopped thread's memory; whether that could be done."""
    try:
        handle = os.open(f"/proc/{tid}/mem", os.O_WRONLY)
    except OSError:
        return False
    try:
        return os.pwrite(handle, content, address) == len(content)
    except (OSError, OverflowError):
        return False
    finally:
        os.close(handle)


def program(process: int) -> str:
    """The name of the program that a process runs, as the kernel has it: a script has its own."""
    try:
        with open(f"/proc/{process}/comm", "rb") as name:
            return name.read().decode(errors="replace").strip()
    except OSError:
        return ""


def text(tid: int, address: int) -> bytes:
    """The NUL-ended text at ``address``, at most PATH_MAX bytes of it."""
    found = b""
    while len(found) < 4096:
        room = 256 - (address + len(found)) % 256
        piece = memory(tid, address + len(found), room)
        end = piece.find(b"\0")
        if end >= 0:
            return found + piece[:end]
        found += piece
        if not piece:
            break
    return found
