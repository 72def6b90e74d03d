"""The tables of system calls, against what the system itself says of their numbers."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from chaoskit.trace import clock
from chaoskit.trace.abi import ABIS, SYNCS, WRITES, Abi

HEADERS = {
    "x86_64": (
        Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
        Path("/usr/include/asm/unistd_64.h"),
    ),
    "aarch64": (Path("/usr/include/asm-generic/unistd.h"),),
}
"""Where the kernel's headers list the numbers of an architecture."""

NEWER = {"fchmodat2": 452, "futex_wait": 455}
"""Calls that are newer than many a header; their numbers are the same everywhere."""


def known_numbers(machine: str) -> dict[str, int]:
    """Name to number of every call, as a header or the audit tools of this system say."""
    for header in HEADERS[machine]:
        if header.exists():
            found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text("utf-8"))
            return {name: int(number) for name, number in found}
    if shutil.which("ausyscall") is not None:
        said = subprocess.run(
            ["ausyscall", machine, "--dump"], capture_output=True, text=True, check=True
        )
        rows = (line.split() for line in said.stdout.splitlines())
        return {row[1]: int(row[0]) for row in rows if len(row) == 2 and row[0].isdigit()}
    pytest.skip(f"neither kernel headers nor ausyscall list the calls of {machine} here")


@pytest.mark.parametrize("machine", sorted(ABIS))
def test_every_number_is_the_one_that_the_system_lists(machine: str) -> None:
    """Each call of a table has the number that the kernel's own headers give it."""
    known = NEWER | known_numbers(machine)
    wrong = {n: v for n, v in ABIS[machine].numbers.items() if known.get(n) != v}
    assert wrong == {}


@pytest.mark.parametrize("machine", sorted(ABIS))
def test_no_state_changing_call_of_a_machine_is_left_out(machine: str) -> None:
    """Whatever an architecture has of the calls that are known by name stands in its table."""
    named = set().union(*(set(abi.numbers) for abi in ABIS.values()))
    here = set(known_numbers(machine))
    assert named & here <= set(ABIS[machine].numbers)


@pytest.mark.parametrize("abi", ABIS.values(), ids=ABIS)
def test_each_number_stands_once(abi: Abi) -> None:
    """No two calls of a table share a number; what has no name for points is a sleep, a read of
    the clock, a wait for a time, or looked at aside.
    """
    numbers = list(abi.numbers.values())
    assert len(set(numbers)) == len(numbers)
    named = abi.kinds()
    unnamed = {name for name, number in abi.numbers.items() if number not in named}
    timed = set(clock._READS) | set(clock._WAITS)
    aside = {"socket", "mprotect", "pkey_mprotect", "io_uring_setup"}
    aside |= {"shmget", "semget", "msgget", "mq_open"}
    assert unnamed - timed == {"nanosleep", *aside}
    assert timed - unnamed == ({"time"} if "time" not in abi.numbers else set())


def test_both_machines_name_the_same_changes() -> None:
    """A point's call means the same on both; only what Linux dropped there is missing on ARM."""
    names = {machine: {k.name for k in abi.kinds().values()} for machine, abi in ABIS.items()}
    assert names["x86_64"] - names["aarch64"] == {"rmdir"}  # there it is unlinkat with a flag
    assert names["aarch64"] <= names["x86_64"]
    assert names["x86_64"] >= SYNCS | WRITES
