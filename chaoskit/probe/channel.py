"""The line from a task to the supervisor: JSON lines on a Unix socket.

The supervisor gives its path in ``CHAOSKIT_PROBE`` and, in ``CHAOSKIT_PROBE_WAIT``, the crossings
at which it wants the task to wait for an answer (it kills instead of answering). Everything else
is sent and forgotten; the supervisor reads this socket before it looks at any request, so the
order is exact all the same. A task in another language can speak it:

    {"point": "charge.done"}                         answered with "go\\n" where a wait is asked for
    {"step": "charge/7", "phase": "recorded"}        started, recorded or restored
    {"end": "refused", "reason": "inputs differ", "step": ""}
"""

from __future__ import annotations

import json
import os
import re
import socket
import threading

PATH_VARIABLE = "CHAOSKIT_PROBE"
WAIT_VARIABLE = "CHAOSKIT_PROBE_WAIT"

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:\-]*")
"""As `chaoskit.model.points.NAME`, which this floor may not import at run time."""


class _Channel:
    """One connection per process; a forked child opens its own."""

    def __init__(self, path: str, waits: frozenset[str]) -> None:
        self._waits = waits
        self._lock = threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        self._answers = self._socket.makefile("rb")

    def send(self, message: dict[str, str]) -> None:
        """One line, not waited for."""
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def cross(self, name: str) -> None:
        """One crossing, waited for where the supervisor asked for it."""
        with self._lock:
            self.send({"point": name})
            if name in self._waits:
                self._answers.readline()


_channels: dict[int, _Channel] = {}


def _channel() -> _Channel | None:
    path = os.environ.get(PATH_VARIABLE)
    if not path:
        return None
    found = _channels.get(os.getpid())
    if found is None:
        waits = frozenset(filter(None, os.environ.get(WAIT_VARIABLE, "").split(",")))
        try:
            found = _Channel(path, waits)
        except OSError:
            return None  # the supervisor has gone: this process is about to be killed
        _channels.clear()
        _channels[os.getpid()] = found
    return found


def watched() -> bool:
    """Whether a trial is listening."""
    return _channel() is not None


def point(name: str) -> None:
    """A crossing: a place where a trial may kill this process.

    Args:
        name: letters, digits and ``_ . / : -``; the same each time the same place is passed.

    Raises:
        ValueError: a trial is listening, and the name has other characters.
    """
    channel = _channel()
    if channel is not None:
        if not _NAME.fullmatch(name):
            raise ValueError(f"not a name for a crossing: {name!r}; use letters, digits, _ . / : -")
        channel.cross(name)


def step(name: str, phase: str) -> None:
    """Say where a step is.

    Args:
        name: the step's stable name.
        phase: ``started`` (its body begins), ``recorded`` (its completion is durable) or
            ``restored`` (its stored result is used instead of running it).
    """
    channel = _channel()
    if channel is not None:
        channel.send({"step": name, "phase": phase})


def refused(reason: str) -> None:
    """Say that this run will not go on, and why; the process then ends with a failure status."""
    _end("refused", reason, "")


def unknown_outcome(step_name: str, reason: str) -> None:
    """Say that nobody can tell whether ``step_name`` happened, so that a person must decide."""
    _end("unknown", reason, step_name)


def _end(end: str, reason: str, step_name: str) -> None:
    channel = _channel()
    if channel is not None:
        channel.send({"end": end, "reason": reason, "step": step_name})
