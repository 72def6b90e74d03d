"""A part of a test as an ordinary user does it, also where the tests run as root."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

SOMEBODY = 12345
_PR_SET_DUMPABLE = 4


def as_an_ordinary_user(deed: Callable[[Path], None]) -> None:
    """Call ``deed`` with a folder of its own, in a process of a user without any powers.

    It is forked: that user may not read the files of this environment.
    """
    folder = Path(tempfile.mkdtemp(prefix="ordinary-", dir="/dev/shm"))
    if os.geteuid() == 0:
        os.chown(folder, SOMEBODY, SOMEBODY)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(SOMEBODY)
                os.setuid(SOMEBODY)
                # As after an exec: a process that was root's keeps its /proc from its new user.
                ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
            deed(folder)
        except BaseException:  # noqa: BLE001 - told to the test, whatever it is
            os.write(write, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    shutil.rmtree(folder, ignore_errors=True)
    assert not said, said
