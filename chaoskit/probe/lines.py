"""Each line of a task's own code as a crossing, where its system calls cannot be traced.

With ``CHAOSKIT_LINES=1`` in the environment of a task that a trial listens to, `start` reports

    line/task.py:12      before line 12 of task.py runs
    line/task.py:12/2    on line 12, before the second thing of it that may act

The first is reported each time, the second where something has acted since the last crossing, so
that there is a place for a kill between any two actions of a line: between the payment and its
record in ``record(pay())``. What may act is a call, the beginning and the end of a ``with``, and a
store or a deletion by key (``shelf[key] = pay()``), counted from the left in each line of a
function. A line that acts once ends at the crossing of the line after it. The name of a file
stands for its path: files of one name in several folders share their names of crossings.

It cannot see inside a call of what is not own code. Everything that such a call does is one step:
the whole commit of SQLite, with all that it writes to its journal and its database; a request, with
its answer; a buffered file's writing, which may happen at any later call or not before the end.
Attributes and operators that act (a property's setter) are seen at the next crossing only, and
so are lines that a signal handler or a finalizer runs in the middle of a report of this thread.
What else is not seen stands in `chaoskit.probe.tracing`. A task that works with threads has its
crossings in the order in which the threads happened to pass them.
"""

from __future__ import annotations

import opcode
import os
import sys
import threading

from chaoskit.probe import channel, tracing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType, ModuleType

LINES_VARIABLE = "CHAOSKIT_LINES"

LINE = "line/"
"""How the names of these crossings begin."""

_ACTS = frozenset(
    number
    for name, number in opcode.opmap.items()
    if (name.startswith("CALL") and not name.startswith("CALL_INTRINSIC"))
    or name.startswith(("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE", "BEFORE_", "WITH_EXCEPT"))
)
"""The instructions that may act: a call (that of ``__exit__`` is one), and these others."""


class _Thread(threading.local):
    """What a thread has done since its last crossing."""

    acted = False


_CHANNEL = os.path.join("chaoskit", "probe", "channel.py")

_thread = _Thread()
_names: dict[str, str] = {}
_places: dict[int, tuple[CodeType, dict[int, int]]] = {}
"""By the identity of a code object, which is kept: where it may act, and as which of its line."""


def start() -> bool:
    """Begin to report lines; False, at no cost, where no trial listens or none asked for them."""
    if os.environ.get(LINES_VARIABLE) != "1" or not os.environ.get(channel.PATH_VARIABLE):
        return False
    if not hasattr(start.__code__, "co_lines"):  # a command's Python may be older than 3.10
        return False
    return tracing.listen(_look, opcodes=True)


def _look(frame: FrameType, event: str) -> None:
    if event == "opcode":
        which = _acting(frame.f_code).get(frame.f_lasti)
        if which is not None:
            if _thread.acted:
                _cross(frame, f"/{which}")
            _thread.acted = True
    elif event == "line":
        _thread.acted = False
        _cross(frame, "")
    else:  # a call, a return, an exception: other code ran or is about to
        _thread.acted = True


def _acting(code: CodeType) -> dict[int, int]:
    known = _places.get(id(code))
    if known is not None:
        return known[1]
    acting: dict[int, int] = {}
    counts: dict[int | None, int] = {}
    instructions = code.co_code
    for begin, end, line in code.co_lines():
        for offset in range(begin, end, 2):
            if instructions[offset] in _ACTS:
                counts[line] = acting[offset] = counts.get(line, 0) + 1
    _places[id(code)] = (code, acting)
    return acting


def _cross(frame: FrameType, suffix: str) -> None:
    below: FrameType | None = frame
    while below is not None:  # a handler's or a finalizer's line: this thread is reporting already
        code = below.f_code
        if code.co_name == "cross" and code.co_filename.endswith(_CHANNEL):
            return
        below = below.f_back
    try:
        _channel().point(f"{_name(frame.f_code.co_filename)}:{frame.f_lineno}{suffix}")
    except OSError as error:
        if error.errno is None:  # not from the system: a signal handler of the task raised it
            raise
        # The supervisor has gone, or the task has closed what it did not open.


def _name(filename: str) -> str:
    known = _names.get(filename)
    if known is None:
        base = os.path.basename(filename)
        plain = (c if c.isascii() and (c.isalnum() or c in "_.-") else "_" for c in base)
        known = _names[filename] = LINE + "".join(plain)
    return known


def _channel() -> ModuleType:
    """The channel that the task itself uses, or else ours: one connection keeps one order.

    They are two where ours was loaded by its path, see ``site/sitecustomize.py``.
    """
    other = sys.modules.get("chaoskit.probe.channel")
    if other is None or other is channel:
        return channel
    try:
        other.point  # noqa: B018
        if not other._channels:  # noqa: SLF001
            other._channels.update(channel._channels)  # noqa: SLF001
    except AttributeError:  # it is being imported, or of another version
        return channel
    return other
