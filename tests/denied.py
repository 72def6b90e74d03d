"""Runs a program where the kernel denies what tracing needs: ``python denied.py WHAT PROGRAM …``.

It puts itself under a small seccomp filter of its own (for good, and for all that it starts) and
becomes the program. ``WHAT`` is ptrace, mount, unshare, or filters: no further seccomp filter may
be installed.
"""

from __future__ import annotations

import errno
import os
import platform
import sys

from chaoskit.trace.filter import _op, install

NUMBERS = {
    "x86_64": {"ptrace": 101, "prctl": 157, "mount": 165, "unshare": 272, "seccomp": 317},
    "aarch64": {"ptrace": 117, "prctl": 167, "mount": 40, "unshare": 97, "seccomp": 277},
}
"""The machines on which calls can be traced at all."""

_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER, _FIRST_ARGUMENT = 0, 16
_ALLOW, _DENY = 0x7FFF0000, 0x00050000 | errno.EPERM
_PR_SET_SECCOMP = 22


def code(what: str) -> bytes:
    """The filter."""
    numbers = NUMBERS[platform.machine()]
    deny = _op(_RETURN, _DENY)
    operations = [_op(_LOAD, _NUMBER)]
    if what != "filters":
        operations += [_op(_EQUAL, numbers[what], 0, 1), deny]
    else:
        operations += [_op(_EQUAL, numbers["seccomp"], 0, 1), deny]
        operations += [_op(_EQUAL, numbers["prctl"], 0, 3), _op(_LOAD, _FIRST_ARGUMENT)]
        operations += [_op(_EQUAL, _PR_SET_SECCOMP, 0, 1), deny]
    return b"".join([*operations, _op(_RETURN, _ALLOW)])


if __name__ == "__main__":
    install(code(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 - there is nothing for a shell to do
