"""The one tracing function of a task's process: it shows the task's own code to whoever listens.

Own code is every Python file that is neither the standard library's, nor installed
(``site-packages``, ``dist-packages``), nor chaoskit's, nor without a file (``<string>``,
``<frozen ...>``). A program that is installed is own code all the same: the package that ``python
-m`` runs, and the one that an entry script (``bin/NAME``) imports. The frames of all other code are
looked at once, when they are entered, and get no events, so that a task pays for its own lines
only.

It is `sys.settrace`, in every thread that `threading` starts. What it does not see: frames that ran
before `listen`, threads started below `threading`, and what runs after the exit handlers (the
finalizers of what is left). A task that has a trace function already (a debugger, a coverage tool)
keeps it and is not watched; one that sets its own later is not watched from there on. An exception
that a signal handler raises in the middle of an event reaches the task as it would have, and ends
the tracing of that thread, as `sys.settrace` says.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading

TYPE_CHECKING = False  # typing's own name for it costs an import
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    Tracer = Callable[..., Any]
    Listener = Callable[[FrameType, str], None]
    """Takes a frame of own code and ``call``, ``line``, ``return``, ``exception`` or ``opcode``;
    a generator that goes on is a ``call``, one that yields is a ``return``."""


def _spellings(folder: str) -> set[str]:
    return {os.path.abspath(folder) + os.sep, os.path.realpath(folder) + os.sep}


_OTHERS = tuple(
    _spellings(os.path.dirname(os.__file__))  # the standard library
    | _spellings(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # chaoskit
)
_INSTALLED = tuple(os.sep + folder + os.sep for folder in ("site-packages", "dist-packages"))

_files: dict[str, str] = {}
_programs: set[str] = set()
"""The installed packages and modules that are the program itself."""
_SCRIPT_MAX = 4096
_listeners: tuple[Listener, ...] = ()
_opcodes = False


def listen(listener: Listener, *, first: bool = False, opcodes: bool = False) -> bool:
    """Show ``listener`` all own code from here on; it must not raise.

    Args:
        listener: called with the frame and the event.
        first: before those that listen already.
        opcodes: ask for ``opcode`` events: before each instruction of own code.

    Returns:
        whether it will be; False where the process has another trace function.
    """
    global _listeners, _opcodes  # noqa: PLW0603 - there is one trace function in a process
    if listener in _listeners:
        return True
    if sys.gettrace() not in {None, _enter}:
        return False
    if not _listeners:
        atexit.register(sys.settrace, None)  # what it needs is taken apart soon afterwards
    _listeners = (listener, *_listeners) if first else (*_listeners, listener)
    if opcodes:
        _opcodes = True
        sys._getframe().f_trace_opcodes = True  # noqa: SLF001 - 3.12 looks at this in settrace only
    threading.settrace(_enter)
    sys.settrace(_enter)
    return True


def own(filename: str) -> str:
    """The path of the file of own code that a code object calls ``filename``; "" for others."""
    known = _files.get(filename)
    if known is None:
        known = _files[filename] = _classified(filename)
    return known


def caller(frame: FrameType) -> FrameType | None:
    """The nearest frame of own code below ``frame``: what goes on when it returns."""
    below = frame.f_back
    while below is not None and not own(below.f_code.co_filename):
        below = below.f_back
    return below


def _classified(filename: str) -> str:
    if not filename or filename.startswith("<"):
        return ""
    try:
        path = os.path.abspath(filename)
    except OSError:  # a relative name, and the working folder is gone
        return ""
    package = _package(path)
    if package:
        return path if package in _programs else ""
    return "" if path.startswith(_OTHERS) else path


def _package(path: str) -> str:
    """The installed package or module that a file belongs to; "" for one that is not installed."""
    for folder in _INSTALLED:
        if folder in path:
            return path.rpartition(folder)[2].partition(os.sep)[0].partition(".")[0]
    return ""


def _begins(filename: str) -> None:
    """The program begins, in this file: what is it, if it was installed?"""
    package = _package(filename)
    found = {package} if package else _imported(filename)
    if not found <= _programs:
        _programs.update(found)
        _files.clear()


def _imported(script: str) -> set[str]:
    """The package that an entry script imports, which installers write in one of two forms."""
    if script.endswith(".py"):
        return set()
    try:
        with open(script, encoding="utf-8") as file:
            lines = file.read(_SCRIPT_MAX).split("\n")
    except (OSError, ValueError):
        return set()
    if not any("sys.exit(" in line for line in lines):
        return set()
    imports = [line.split()[1] for line in lines if line.startswith("from ") and " import " in line]
    standard = getattr(sys, "stdlib_module_names", ())
    return {name.split(".")[0] for name in imports} - {*standard, "", "chaoskit"}


def _enter(frame: FrameType, event: str, arg: object) -> Tracer | None:
    name = frame.f_code.co_filename
    known = _files.get(name)
    if known is None:
        if frame.f_globals.get("__name__") == "__main__":
            _begins(name)
        known = own(name)
    if not known:
        return None
    if _opcodes:
        frame.f_trace = _inside  # before the next line, or 3.13 does not see that one
        frame.f_trace_opcodes = True
    return _inside(frame, event, arg)


def _inside(frame: FrameType, event: str, arg: object) -> Tracer:
    for listener in _listeners:
        listener(frame, event)
    return _inside
