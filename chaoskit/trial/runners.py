"""Several runners of one attempt, let go at the same moment.

The standard library only: the launcher imports it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""The option of prctl(2) by which a process is sent a signal when its parent ends."""


def multiply(runners: int, failure: int) -> None:
    """Go on as so many processes, let go at the same moment; this one waits for all of them.

    It ends with 0 if one of them did, otherwise with the highest status, and with 1 where all were
    ended by a signal. Whoever asks it to stop asks all of them.
    """
    asked = {signal.SIGTERM, signal.SIGINT}
    # Held back and waited for: a handler would be late for a signal that comes just before a wait.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*asked, signal.SIGCHLD})
    gate_read, gate_write = os.pipe()
    pids = []
    for _ in range(runners):
        pid = os.fork()
        if pid == 0:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(gate_write)
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os.read(gate_read, 1)
            os.close(gate_read)
            return
        pids.append(pid)

    for descriptor in (failure, gate_read, gate_write):
        os.close(descriptor)
    codes: list[int] = []
    while pids:
        number = signal.sigwait({*asked, signal.SIGCHLD})
        if number in asked:
            for pid in pids:  # one that is not waited for yet keeps its pid
                os.kill(pid, number)
        for pid in tuple(pids):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                codes.append(os.waitstatus_to_exitcode(status))
                pids.remove(pid)
    os._exit(0 if 0 in codes else max(1, *codes))


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process; nothing is done on systems without that call."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
