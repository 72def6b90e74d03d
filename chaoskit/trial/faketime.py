"""libfaketime: the library that moves the clock of an unmodified program, where it is installed.

Standard library only: the launcher loads it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress

MOVED = "FAKETIME"
"""The variable that says by how much; where it is set, the task's clock has moved already."""

_PLACES = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib64/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
    "/usr/local/lib/faketime/libfaketime.so.1",
)
"""Where the packages of distributions put it."""

_SHARED = "/dev/shm"  # noqa: S108 - other programs' files, of which those of the dead are removed
_NAME = re.compile(r"(?:faketime_shm|sem\.faketime_sem)_([0-9]+)")
"""What each program that uses it keeps there while it runs, by its pid."""


def library() -> str:
    """Its path; empty where it is not installed."""
    return next((path for path in _PLACES if os.path.isfile(path)), "")


def variables(path: str, shift_s: int, base: Mapping[str, str]) -> dict[str, str]:
    """What a program is started with, so that the library at ``path`` moves its clock.

    Args:
        path: see `library`.
        shift_s: by how many seconds.
        base: its environment otherwise.
    """
    return {
        "LD_PRELOAD": " ".join(filter(None, (path, base.get("LD_PRELOAD")))),
        MOVED: f"+{shift_s}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",  # waits last as long as they say
    }


def sweep() -> None:
    """Remove what programs that were killed have left in shared memory.

    A program that is still there and had it from a dead one makes its own anew.
    """
    with suppress(OSError):
        for name in os.listdir(_SHARED):
            found = _NAME.fullmatch(name)
            if found and not os.path.exists(f"/proc/{found[1]}"):
                with suppress(OSError):
                    os.unlink(f"{_SHARED}/{name}")
