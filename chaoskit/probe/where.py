"""Which line of a task's own code is running, for an observer outside.

With ``CHAOSKIT_WHERE=<folder>`` in the environment, `start` makes each thread keep a file
``<folder>/<native thread id>`` of 2048 bytes: ``file:line:function`` in UTF-8 and a newline, for
the line that runs and for each line of own code that called it, as far as they fit; then zeros.
It is mapped into memory: to keep it costs no system call, and an observer that looks while the
thread stands still in one finds the line that made it. A SIGKILL leaves the last line behind.

Where own code has called a library the line is that of the call; after an own function has returned
it is its caller's again. When no own code is left below (an event loop between two callbacks that
it was not started by, a pool's idle thread, the end of the process) the last line stays.

Each thread's first line makes its file (open, write, mmap, and one descriptor that stays), or takes
over that of a thread that ended (rename): calls of ours, which an observer knows by their path.
For tasks that are commands see `site_folder`; for what is not seen see `chaoskit.probe.tracing`.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading

from chaoskit.probe import tracing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import NamedTuple

    class Location(NamedTuple):
        """A place in own code; ``function`` is its qualified name, ``<module>`` outside of any."""

        file: str
        line: int
        function: str

else:
    from collections import namedtuple

    Location = namedtuple("Location", "file line function")  # noqa: PYI024 - as light as it gets

FOLDER_VARIABLE = "CHAOSKIT_WHERE"

_SIZE = 2048
_LINE_MAX = 1024
_CALLERS_MAX = 16
_SHOWN_MAX = 4096


class _Page:
    """The file of one thread. It goes to another thread when its own has ended.

    ``below`` is what it holds of the callers of the frame whose id is ``frame``. It is no frame
    itself: what is kept here would live longer than in the task as it is.
    """

    def __init__(self) -> None:
        self.frame = 0
        self.below = b""
        self._spare = _spare
        path = os.path.join(_folder, str(threading.get_native_id()))
        try:
            self._path, self.bytes = _spare.pop()
        except IndexError:
            self._path, self.bytes = path, _mapped(path)
            _kept.append(self.bytes)
        else:
            self.bytes[:] = bytes(_SIZE)
            os.rename(self._path, path)
            self._path = path

    def __del__(self) -> None:
        if hasattr(self, "bytes"):
            self._spare.append((self._path, self.bytes))


class _Here(threading.local):
    """Each thread's page; None where it could not have one (the disk is full, no descriptors)."""

    def __init__(self) -> None:
        try:
            self.page: _Page | None = _Page()
        except OSError:
            self.page = None


_folder = ""
_here: _Here
_spare: list[tuple[str, mmap.mmap]] = []
_shown: dict[tuple[int, int], tuple[CodeType, bytes]] = {}
"""What a page holds for a line of a code object; the code is kept, so that no other has its id."""
_kept: list[mmap.mmap] = []
"""Every map, for good: to let one go closes a descriptor by its number, and a task that closes all
descriptors, as daemons do, may have one of its own under that number by then."""


def start() -> bool:
    """Begin to show where this process is; False, at no cost, where nobody asked for it."""
    global _folder, _here  # noqa: PLW0603 - there is one folder in a process
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return False
    if not _folder:
        _folder = os.path.abspath(folder)
        _here = _Here()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_forked)
    return tracing.listen(_look, first=True)


def read(folder: str, tid: int) -> Location | None:
    """Where the thread ``tid`` is or last was; None where it has not shown that."""
    found = stack(folder, tid)
    return found[0] if found else None


def stack(folder: str, tid: int) -> tuple[Location, ...]:
    """The same with the lines that called it, the innermost one first; as far as they are shown."""
    try:
        with open(os.path.join(folder, str(tid)), "rb") as file:
            *texts, _ = file.read(_SIZE).partition(b"\0")[0].split(b"\n")
        parts = [text.decode("utf-8", "surrogateescape").rsplit(":", 2) for text in texts]
        return tuple([Location(path, int(line), function) for path, line, function in parts])
    except (OSError, ValueError):
        return ()


def site_folder() -> str:
    """The folder that makes a Python command start this, when it is the first of PYTHONPATH."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")


def _look(frame: FrameType, event: str) -> None:
    if event in {"line", "call"}:
        _show(frame, entered=event == "call")
    elif event == "return":
        below = tracing.caller(frame)
        if below is not None:
            _show(below, entered=True)


def _show(frame: FrameType, *, entered: bool) -> None:
    """Show the line of ``frame``; where it was just ``entered``, or control came to it unseen, its
    callers are looked at.
    """
    page = _here.page
    if page is None:
        return
    if entered or page.frame != id(frame):
        page.frame, page.below = id(frame), _callers(frame)
    data = _text(frame)
    room = _SIZE - len(data)
    below = page.below
    if len(below) > room:
        below = below[: below.rfind(b"\n", 0, room) + 1]
    page.bytes[:] = (data + below).ljust(_SIZE, b"\0")


def _callers(frame: FrameType) -> bytes:
    found: list[bytes] = []
    below = tracing.caller(frame)
    while below is not None and len(found) < _CALLERS_MAX:
        found.append(_text(below))
        below = tracing.caller(below)
    return b"".join(found)


def _text(frame: FrameType) -> bytes:
    """The line of ``frame`` as a page holds it."""
    code, line = frame.f_code, frame.f_lineno
    key = (id(code), line)
    known = _shown.get(key)
    if known is None:
        if len(_shown) >= _SHOWN_MAX:
            _shown.clear()
        known = _shown[key] = (code, _made(code, line))
    return known[1]


def _made(code: CodeType, line: int) -> bytes:
    function = getattr(code, "co_qualname", code.co_name)
    text = f"{tracing.own(code.co_filename)}:{line}:{function}".replace("\n", "?") + "\n"
    data = text.encode("utf-8", "surrogateescape")
    return data if len(data) <= _LINE_MAX else b"..." + data[3 - _LINE_MAX :]


def _forked() -> None:
    """In a forked child: the pages are the parent's, which goes on writing to them."""
    global _here, _spare  # noqa: PLW0603
    _spare = []
    _here = _Here()
    below = tracing.caller(sys._getframe())  # noqa: SLF001
    if below is not None:
        _show(below, entered=True)


def _mapped(path: str) -> mmap.mmap:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, bytes(_SIZE))  # not a hole: a full disk must not be noticed later
        return mmap.mmap(descriptor, _SIZE)
    finally:
        os.close(descriptor)
