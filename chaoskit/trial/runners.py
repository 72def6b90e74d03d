"""What a child of the launcher becomes: a program, or several runners of one attempt.

The standard library only: the launcher imports it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shlex
import signal
import sys
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1
"""The option of prctl(2) by which a process is sent a signal when its parent ends."""


END = b"\0"
"""After what a runner says of why it cannot begin."""


def multiply(runners: int, failure: int, success: Sequence[int]) -> None:
    """Go on as so many processes, let go at the same moment; this one waits for all of them.

    It ends as one of them that succeeded, otherwise with the highest exit code, and with one that
    means failure where all were ended by a signal. Whoever asks it to stop asks all of them.
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
    failed = next((code for code in range(1, 256) if code not in success), 1)
    claims = [code for code in codes if code in success]
    os._exit(claims[0] if claims else max([code for code in codes if code > 0], default=failed))


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process; nothing is done on systems without that call."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def execute(argv: list[str], failure: int) -> None:
    """Replace this process by the command, or say on ``failure`` why not."""
    os.set_inheritable(failure, False)
    try:
        os.execvpe(argv[0], argv, os.environ)  # noqa: S606
    except OSError as error:
        said = f"{argv[0]}: {error.strerror}{_hint(argv[0], error)}"
        os.write(failure, said.encode(errors="backslashreplace") + END)
    os._exit(127)


def _hint(program: str, error: OSError) -> str:
    """What to do about a program that cannot be executed."""
    if "/" not in program:
        return " (no such program on PATH)" if error.errno == errno.ENOENT else ""
    if not os.path.lexists(program):
        where = "a relative path is looked for from the task's working directory"
        return "" if program.startswith("/") else f" ({where})"
    if os.path.isdir(program):
        return " (it is a folder)"
    if error.errno == errno.ENOEXEC:
        return " (a script needs a first line that names its interpreter, as in #!/bin/sh)"
    if error.errno == errno.EACCES and not os.access(program, os.X_OK):
        return f" (it is not executable: chmod +x {shlex.quote(program)})"
    interpreter = _interpreter(program)
    return f" (its first line names the interpreter {interpreter!r})" if interpreter else ""


def _interpreter(program: str) -> str:
    """What the first line of a script names, also a carriage return at its end."""
    try:
        with open(program, "rb") as file:
            line = file.read(256).split(b"\n")[0]
    except OSError:
        return ""
    words = line[2:].split(b" ") if line.startswith(b"#!") else []
    return next((os.fsdecode(word) for word in words if word), "")
