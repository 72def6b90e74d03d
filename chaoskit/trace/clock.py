"""The task's own wall clock: what it reads is shifted, and what it waits for, too.

Only calls that involve CLOCK_REALTIME stop (`chaoskit.trace.filter`); the monotonic clocks are
the kernel's own, so that a sleep lasts as long as it says. File times stay the kernel's.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from chaoskit.trace import ptrace, vdso
from chaoskit.trace.abi import Abi
from chaoskit.trace.ptrace import Entered

_SECOND = 10**9
_RED_ZONE, _SCRATCH = 128, 64
"""Below the end of its stack a function may keep this much; there a shifted time has room."""

_FAR_S = 1 << 60
"""A deadline that is further away means never."""

_WAITS = {
    "clock_nanosleep": 2,
    "futex": 3,
    "futex_waitv": 3,
    "futex_wait": 4,
    "mq_timedsend": 4,
    "mq_timedreceive": 4,
    "timerfd_settime": 2,
    "timer_settime": 2,
}
"""Calls that wait for a time of day, and the argument that points to it."""

_READS = frozenset({"clock_gettime", "gettimeofday", "time"})

After = dict[int, int]
"""Words of the registers that are put back when a call is over."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that a thread is making and that involves the time of day."""

    name: str
    call: Entered
    words: After


@dataclass(slots=True)
class Clock:
    """The wall clock of a task, which differs from the machine's by ``shift_ns``."""

    abi: Abi
    shift_ns: int
    _names: dict[int, str] = field(init=False)

    def __post_init__(self) -> None:
        known = (*_READS, *_WAITS)
        self._names = {self.abi.numbers[name]: name for name in known if name in self.abi.numbers}

    def hide(self, pid: int) -> None:
        """Let a process that has just begun, or executed a program, read the time by calls.

        Raises:
            OSError: the kernel does not let us.
        """
        with suppress(FileNotFoundError, ProcessLookupError):  # it is dead
            vdso.hide(pid, self.abi)

    def entered(self, tid: int, call: Entered) -> Asked | None:
        """A call that a thread is about to make: shift what it waits for. None: not one of ours."""
        name = self._names.get(call.number)
        if name is None:
            return None
        words: After = {}
        if name in _WAITS:
            words = self._wait(tid, name, call)
        return Asked(name, call, words)

    def left(self, tid: int, asked: Asked, result: int) -> None:
        """The call is over: shift what it has read, and put its arguments back."""
        words = dict(asked.words)
        if result >= 0:
            words |= self._read(tid, asked.name, asked.call.arguments)
        if words:
            ptrace.set_words(tid, self.abi.words, words)

    def now_ns(self, clock: int = time.CLOCK_REALTIME) -> int:
        """What the task's clock says."""
        return time.clock_gettime_ns(clock) + self.shift_ns

    # Reads.

    def _read(self, tid: int, name: str, arguments: tuple[int, ...]) -> After:
        if name == "clock_gettime":
            self._tell(tid, arguments[1], self.now_ns(arguments[0] & 0xFFFFFFFF), 1)
        elif name == "gettimeofday" and arguments[0]:
            self._tell(tid, arguments[0], self.now_ns(), 1000)
        elif name == "time":
            seconds = self.now_ns() // _SECOND
            if arguments[0]:
                with suppress(OSError):
                    ptrace.store(tid, arguments[0], struct.pack("=q", seconds))
            return {self.abi.result: seconds}
        return {}

    def _tell(self, tid: int, address: int, now_ns: int, unit: int) -> None:
        seconds, rest = divmod(now_ns, _SECOND)
        with suppress(OSError):  # another thread has unmapped it meanwhile
            ptrace.store(tid, address, struct.pack("=qq", seconds, rest // unit))

    # Waits.

    def _wait(self, tid: int, name: str, call: Entered) -> After:
        at = _WAITS[name]
        address = call.arguments[at]
        kept: Callable[[bytes], bytes] = self._deadline
        size = 16
        if name in {"timer_settime", "timerfd_settime"}:
            if not _is_wall_clock(tid, name, call.arguments[0]):
                return {}
            kept, size = self._timer, 32
        given = ptrace.memory(tid, address, size) if address else b""
        if len(given) != size:
            return {}  # no deadline; or a wrong address, of which the kernel tells the task
        shifted = kept(given)
        scratch = (call.stack - _RED_ZONE - _SCRATCH) & ~15
        if shifted == given:
            return {}
        with suppress(OSError):
            ptrace.store(tid, scratch, shifted)
            word = self.abi.arguments[at]
            ptrace.set_words(tid, self.abi.words, {word: scratch})
            return {word: address}
        return {}

    def _deadline(self, given: bytes) -> bytes:
        """A deadline by the task's clock, by the machine's."""
        seconds, rest = struct.unpack("=qq", given)
        if not (0 <= seconds < _FAR_S and 0 <= rest < _SECOND):
            return given
        moment = max(seconds * _SECOND + rest - self.shift_ns, 1)
        return struct.pack("=qq", *divmod(moment, _SECOND))

    def _timer(self, given: bytes) -> bytes:
        """The same of an interval timer; none of its own means that it is to stop."""
        interval, value = given[:16], given[16:]
        return given if not any(value) else interval + self._deadline(value)


def _is_wall_clock(tid: int, name: str, which: int) -> bool:
    """Whether a timer runs by the time of day: the kernel lists each one's clock."""
    wall = {time.CLOCK_REALTIME, 8, 11}  # 8: CLOCK_REALTIME_ALARM, 11: CLOCK_TAI
    with suppress(OSError, ValueError, IndexError):
        if name == "timerfd_settime":
            with open(f"/proc/{tid}/fdinfo/{which}", encoding="ascii") as file:
                fields = dict(line.split(":", 1) for line in file if ":" in line)
            return int(fields["clockid"]) in wall
        with open(f"/proc/{tid}/timers", encoding="ascii") as file:
            timers = file.read().split("ID: ")
        found = next(t for t in timers if t.split("\n", 1)[0].strip() == str(which))
        return int(found.rpartition("ClockID:")[2].split()[0]) in wall
    return False
