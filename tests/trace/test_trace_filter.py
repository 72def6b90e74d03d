"""The seccomp filter, run instruction by instruction on every call that there may be."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import pytest

from chaoskit.trace.abi import ABIS, Abi
from chaoskit.trace.filter import FOREIGN, program

ALLOW, TRACE, ERRNO = "allow", "trace", "errno"
ACTIONS = {0x7FFF0000: ALLOW, 0x7FF00000: TRACE, 0x00050000: ERRNO}
I386, X32 = 0x40000003, 0x40000000
NUMBERS = range(1024)
"""Linux has some 470 calls; further numbers must not matter either."""

SLEEPS = ("nanosleep", "clock_nanosleep")
SHARES = {"shmget": 2, "semget": 2, "msgget": 1, "mq_open": 1}
"""Calls that make an object that outlives a process, and the argument that says so."""

DEPENDS = ("open", "openat", "mmap", "mprotect", "pkey_mprotect", "socket", *SHARES)
"""Calls of which the arguments decide."""

O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_APPEND = 0, 1, 2, 0o100, 0o200, 0o1000, 8
O_CLOEXEC, O_TMPFILE_ONLY = 0o2000000, 0o20000000
PROT_READ, PROT_WRITE = 1, 2
MAP_SHARED, MAP_PRIVATE, MAP_SHARED_VALIDATE, MAP_ANONYMOUS = 1, 2, 3, 0x20


def verdict(
    code: bytes, arch: int, number: int, arguments: Mapping[int, int] | None = None
) -> tuple[str, int]:
    """What the kernel would do with one call: a classic BPF machine in twenty lines."""
    given = arguments or {}
    values = [given.get(at, 0) for at in range(6)]
    data = struct.pack("=iIQ6Q", number - (1 << 32 if number >> 31 else 0), arch, 0, *values)
    instructions = list(struct.iter_unpack("=HBBI", code))
    accumulator, at = 0, 0
    for _ in instructions:  # jumps go forwards only, so no program takes more steps
        operation, if_true, if_false, value = instructions[at]
        at += 1
        if operation == 0x06:
            return ACTIONS[value & 0xFFFF0000], value & 0xFFFF
        if operation == 0x54:
            accumulator &= value
            continue
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
            continue
        holds = {
            0x15: accumulator == value,
            0x35: accumulator >= value,
            0x45: bool(accumulator & value),
        }[operation]
        at += if_true if holds else if_false
    raise AssertionError("the program has no end")


@pytest.fixture(params=sorted(ABIS))
def abi(request: pytest.FixtureRequest) -> Abi:
    """Each of the tables."""
    return ABIS[request.param]


def test_what_is_traced_is_exactly_the_table(abi: Abi) -> None:
    """Of all numbers, those of state-changing calls are traced and every other one runs freely."""
    code = program(abi)
    special = {abi.numbers[name] for name in (*DEPENDS, "io_uring_setup") if name in abi.numbers}
    for number in NUMBERS:
        if number not in special:
            expected = TRACE if number in abi.kinds() else ALLOW
            assert verdict(code, abi.audit, number) == (expected, 0), number


def test_arguments_of_other_calls_do_not_matter(abi: Abi) -> None:
    """A call is traced or not whatever its arguments are, but for opening and mapping."""
    code = program(abi)
    special = {abi.numbers[name] for name in DEPENDS if name in abi.numbers}
    everything = dict.fromkeys(range(6), (1 << 64) - 1)
    for number in set(NUMBERS) - special:
        assert verdict(code, abi.audit, number, everything) == verdict(code, abi.audit, number)


@pytest.mark.parametrize("name", SHARES)
def test_only_who_makes_a_shared_object_is_stopped(abi: Abi, name: str) -> None:
    """Not who looks for one that is there: the flag is IPC_CREAT, or O_CREAT."""
    made = 0o100 if name == "mq_open" else 0o1000
    for flags, expected in ((0, ALLOW), (made, TRACE), (made | 0o600, TRACE), (0o600, ALLOW)):
        told = verdict(program(abi), abi.audit, abi.numbers[name], {SHARES[name]: flags})
        assert told == (expected, 0)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (O_RDONLY, ALLOW),
        (O_RDONLY | O_CLOEXEC, ALLOW),
        (O_WRONLY, ALLOW),
        (O_RDWR | O_APPEND, ALLOW),
        (O_RDWR | O_EXCL, ALLOW),
        (O_WRONLY | O_CREAT, TRACE),
        (O_RDONLY | O_CREAT | O_CLOEXEC, TRACE),
        (O_WRONLY | O_TRUNC, TRACE),
        (O_RDWR | O_CREAT | O_EXCL, TRACE),
        (O_RDWR | O_TMPFILE_ONLY, TRACE),
    ],
)
def test_opening_stops_where_it_creates_or_truncates(abi: Abi, flags: int, expected: str) -> None:
    """Opening what is there changes nothing and stops nowhere, also for writing."""
    code = program(abi)
    for name, at in (("open", 1), ("openat", 2)):
        if name in abi.numbers:
            got = verdict(code, abi.audit, abi.numbers[name], {at: flags, at + 1: O_CREAT})
            assert got == (expected, 0), name


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (MAP_PRIVATE, ALLOW),
        (MAP_PRIVATE | MAP_ANONYMOUS, ALLOW),
        (MAP_SHARED, TRACE),
        (MAP_SHARED_VALIDATE, TRACE),
    ],
)
def test_mapping_stops_where_stores_can_change_the_file(
    abi: Abi, flags: int, expected: str
) -> None:
    """A private mapping is the process's own; one that is shared is the file, now or later."""
    for protection in (0, PROT_READ, PROT_WRITE):
        got = verdict(program(abi), abi.audit, abi.numbers["mmap"], {2: protection, 3: flags})
        assert got == (expected, 0)


@pytest.mark.parametrize("call", ["mprotect", "pkey_mprotect"])
def test_a_mapping_is_looked_at_where_it_becomes_writable(abi: Abi, call: str) -> None:
    """Not where a program's start-up protects what it has loaded."""
    code, number = program(abi), abi.numbers[call]
    for protection in range(8):
        expected = TRACE if protection & PROT_WRITE else ALLOW
        assert verdict(code, abi.audit, number, {2: protection}) == (expected, 0)


SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET = 1, 2, 3, 5
SOCK_FLAGS = 0o2000000 | 0o4000


@pytest.mark.parametrize("light", [False, True])
def test_sockets_are_looked_at_that_are_no_streams(abi: Abi, *, light: bool) -> None:
    """And rings, in each attempt."""
    code, number = program(abi, light=light), abi.numbers["socket"]
    for kind in (SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET):
        expected = TRACE if kind in {SOCK_DGRAM, SOCK_RAW} else ALLOW
        for flags in (0, SOCK_FLAGS):
            assert verdict(code, abi.audit, number, {1: kind | flags}) == (expected, 0)
    assert verdict(code, abi.audit, abi.numbers["io_uring_setup"]) == (TRACE, 0)


def test_a_light_filter_stops_where_somebody_is_reached_and_nowhere_else(abi: Abi) -> None:
    """Whatever a program writes, opens or maps runs at full speed."""
    code = program(abi, light=True)
    everything = dict.fromkeys(range(6), (1 << 64) - 1)
    names = ("connect", "sendto", "sendmsg", "sendmmsg", "socket", "io_uring_setup")
    stops = {abi.numbers[name] for name in names}
    for number in NUMBERS:
        expected = TRACE if number in stops else ALLOW
        assert verdict(code, abi.audit, number, everything) == (expected, 0), number


def test_sleeps_are_skipped_on_request_only(abi: Abi) -> None:
    """They run as they are, or return success at once; nothing else differs between the two."""
    plain, skipping = program(abi), program(abi, skip_sleeps=True)
    sleeps = {abi.numbers[name] for name in SLEEPS}
    for number in NUMBERS:
        usual, asked = (verdict(code, abi.audit, number) for code in (plain, skipping))
        assert (usual, asked) == (
            ((ALLOW, 0), (ERRNO, 0)) if number in sleeps else (usual, usual)
        ), number


@pytest.mark.parametrize("skip_sleeps", [False, True])
def test_calls_by_another_table_are_told_apart(abi: Abi, *, skip_sleeps: bool) -> None:
    """Whatever comes from another architecture, or from x32, is traced as foreign, rings too."""
    code = program(abi, skip_sleeps=skip_sleeps)
    other = next(some.audit for some in ABIS.values() if some.audit != abi.audit)
    for number in NUMBERS:
        for arch in (I386, other):
            assert verdict(code, arch, number) == (TRACE, FOREIGN)
        assert verdict(code, abi.audit, number | X32) == (TRACE, FOREIGN)
    assert verdict(code, abi.audit, 0xFFFFFFFF) == (TRACE, FOREIGN)  # what skips a call


def test_the_kernel_takes_the_program(abi: Abi) -> None:
    """It is short enough, each jump stays inside, and no path leaves it without an answer."""
    for code in (program(abi), program(abi, skip_sleeps=True), program(abi, light=True)):
        instructions = list(struct.iter_unpack("=HBBI", code))
        assert len(instructions) <= 4096
        last = len(instructions) - 1
        assert instructions[last][0] == 0x06
        for at, (operation, if_true, if_false, _) in enumerate(instructions):
            if operation in {0x15, 0x35, 0x45}:
                assert at + 1 + max(if_true, if_false) <= last
            else:
                assert operation in {0x06, 0x20}


REALTIME, MONOTONIC, COARSE, BOOTTIME, ALARM, TAI = 0, 1, 5, 7, 8, 11
FUTEX_WAIT, FUTEX_WAKE, FUTEX_LOCK_PI, FUTEX_WAIT_BITSET, FUTEX_LOCK_PI2 = 0, 1, 6, 9, 13
PRIVATE, BY_REALTIME = 128, 256


@pytest.mark.parametrize(
    ("name", "arguments", "stops"),
    [
        ("clock_gettime", {0: REALTIME}, True),
        ("clock_gettime", {0: COARSE}, True),
        ("clock_gettime", {0: ALARM}, True),
        ("clock_gettime", {0: TAI}, True),
        ("clock_gettime", {0: MONOTONIC}, False),
        ("clock_gettime", {0: BOOTTIME}, False),
        ("clock_gettime", {0: (1 << 64) - 2}, False),  # some process's own time
        ("gettimeofday", {}, True),
        ("time", {}, True),
        ("nanosleep", {}, False),
        ("clock_nanosleep", {0: REALTIME, 1: 0}, False),
        ("clock_nanosleep", {0: REALTIME, 1: 1}, True),
        ("clock_nanosleep", {0: TAI, 1: 1}, True),
        ("clock_nanosleep", {0: MONOTONIC, 1: 1}, False),
        ("futex", {1: FUTEX_WAIT | PRIVATE}, False),
        ("futex", {1: FUTEX_WAKE | PRIVATE}, False),
        ("futex", {1: FUTEX_WAIT_BITSET | PRIVATE}, False),
        ("futex", {1: FUTEX_WAIT_BITSET | PRIVATE | BY_REALTIME}, True),
        ("futex", {1: FUTEX_LOCK_PI}, True),
        ("futex", {1: FUTEX_LOCK_PI | PRIVATE}, True),
        ("futex", {1: FUTEX_LOCK_PI2 | PRIVATE}, False),
        ("futex", {1: FUTEX_LOCK_PI2 | BY_REALTIME}, True),
        ("futex_waitv", {4: REALTIME}, True),
        ("futex_waitv", {4: MONOTONIC}, False),
        ("timerfd_settime", {1: 0}, False),
        ("timerfd_settime", {1: 1}, True),
        ("timer_settime", {1: 0}, False),
        ("timer_settime", {1: 1}, True),
        ("mq_timedreceive", {}, True),
    ],
)
@pytest.mark.parametrize("changes", [True, False])
def test_only_what_involves_the_time_of_day_stops_for_the_clock(
    abi: Abi, name: str, arguments: dict[int, int], *, stops: bool, changes: bool
) -> None:
    """By the clock or the flags in its arguments; none of it where the clock is the machine's."""
    if name not in abi.numbers:
        pytest.skip("another machine's call")
    number = abi.numbers[name]
    code = program(abi, clock=True, changes=changes)
    assert verdict(code, abi.audit, number, arguments) == (TRACE if stops else ALLOW, 0)
    assert verdict(program(abi), abi.audit, number, arguments) == (ALLOW, 0)


def test_a_filter_for_the_clock_alone_stops_at_no_change(abi: Abi) -> None:
    """What changes something runs freely where nobody asked for it."""
    code = program(abi, clock=True, changes=False)
    everything = dict.fromkeys(range(6), (1 << 64) - 1)
    for number in (*abi.kinds(), *(abi.numbers[n] for n in ("mmap", "io_uring_setup"))):
        assert verdict(code, abi.audit, number, everything) == (ALLOW, 0), number
