"""The supervisor's side of the copy-on-write view in which a task runs; see `overlay`.

What the task wrote is in the upper layers, which the supervisor reads and fills through the
launcher's descriptor. Files as the task sees them are found below the launcher's root.
"""

from __future__ import annotations

import ctypes
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from chaoskit.model.errors import ChaoskitError, HarnessError
from chaoskit.trial.launching import Launching
from chaoskit.trial.overlay import HOME

_SPACES = ("user", "ipc", "mnt")
_LINKS_MAX = 40
"""More of them in one path are a loop, to Linux too: path_resolution(7)."""


class View:
    """The view of one launcher.

    Attributes:
        folders: the upper layers by label.
        closed: what the task can only read, as it could not be covered.
    """

    def __init__(self, launching: Launching, told: dict[str, Any]) -> None:
        """``told`` is what the launcher said of it."""
        self._launching = launching
        self._store = f"/proc/{launching.pid}/fd/{told['store']}"
        self._places: dict[str, str] = {at: label for label, at in told["view"].items()}
        self.closed: list[str] = list(told["closed"])
        self.folders: dict[str, Path] = {}
        self._learn(told["uppers"])

    def _learn(self, uppers: dict[str, str]) -> None:
        for label, folder in uppers.items():
            self.folders[label] = Path(f"{self._store}/{folder}")

    def outside(self, path: str) -> Path:
        """A path of the task's, as this process can use it."""
        return Path(f"/proc/{self._launching.pid}/root{path}")

    def real(self, path: str) -> str:
        """An absolute path of the task's, with its links followed as the task follows them: one
        that leads to an absolute path would lead this process out of the view.
        """
        at, left, links = "", path.split("/")[::-1], 0
        while left:
            part = left.pop()
            if part == "..":
                at = at.rpartition("/")[0]
            elif part not in {"", "."}:
                target = _link(self.outside(f"{at}/{part}"))
                if target is None or links == _LINKS_MAX:
                    at = f"{at}/{part}"
                else:
                    links += 1
                    at = "" if target.startswith("/") else at
                    left += target.split("/")[::-1]
        return at or "/"

    def upper(self, path: str) -> str:
        """Where what the task wrote to an absolute path lies, if it wrote anything there."""
        at = path
        while at not in self._places:
            if at in {"/", ""}:
                return path
            at = os.path.dirname(at)
        return f"{self.folders[self._places[at]]}{path.removeprefix(at)}"

    async def renew(self, labels: Sequence[str]) -> list[str]:
        """Make these upper layers empty; the labels of all that are now, to be filled."""
        uppers = await self._launching.renew(labels)
        self._learn(uppers)
        return list(uppers)

    async def cover(self, labels: Sequence[str]) -> None:
        """Let the task see what these upper layers hold."""
        await self._launching.cover(labels)

    def run(self, deed: Callable[[], object]) -> None:
        """Call ``deed`` in a process of its own that sees what the task sees.

        Raises:
            HarnessError: it raised something; the message is that of an error of ours, and the
                traceback of any other.
        """
        read, write = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.close(read)
                self._enter()
                deed()
                code = 0
            except ChaoskitError as error:
                os.write(write, str(error).encode(errors="backslashreplace")[:60_000])
            except BaseException:  # noqa: BLE001 - told to the parent, whatever it is
                os.write(write, traceback.format_exc(limit=-3).encode()[:60_000])
            finally:
                with suppress(BaseException):
                    sys.stdout.flush()
                    sys.stderr.flush()
                os._exit(code)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            said = pipe.read().decode(errors="replace")
        _, status = os.waitpid(child, 0)
        if said or status:
            ended = os.waitstatus_to_exitcode(status)
            raise HarnessError(said or f"its process ended with status {ended}")

    def _enter(self) -> None:
        """Join the launcher's namespaces."""
        libc = ctypes.CDLL(None, use_errno=True)
        here = os.getcwd()
        for name in _SPACES:
            path = f"/proc/{self._launching.pid}/ns/{name}"
            if os.stat(path).st_ino == os.stat(f"/proc/self/ns/{name}").st_ino:
                continue
            descriptor = os.open(path, os.O_RDONLY)
            if libc.setns(descriptor, 0) != 0:
                error = ctypes.get_errno()
                raise OSError(error, os.strerror(error), path)
        os.chdir(here)


def _link(path: Path) -> str | None:
    """Where a link leads; None: there is none."""
    try:
        return os.readlink(path)
    except OSError:
        return None


WORK = f"{HOME}/state"
"""The work folder in every view."""
