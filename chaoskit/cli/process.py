"""The process that the command line is: its signals and its standard streams.

Only what Python itself has imported by now: until this is in place, Ctrl-C shows a traceback.
"""

from __future__ import annotations

import _signal as signal  # signal makes enumerations, which takes its time
import io
import os
import sys

TYPE_CHECKING = False  # as typing has it, which takes its time to import
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Any, Self

INTERRUPTED = "interrupted; a campaign goes on when the same command is given again"
_ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_SHOW_CURSOR = b"\x1b[?25h"


class Signals:
    """How Ctrl-C, SIGTERM and SIGHUP end chaoskit.

    Before a command has begun there is nothing to tidy up, and the first signal ends the process.
    Later the first one raises KeyboardInterrupt, and a second one ends the process all the same:
    workers and launchers see that, and tidy up behind themselves as after SIGKILL.

    ``began``: a command has begun. ``done`` shows what is done by now, if nothing is left to do.
    """

    def __init__(self) -> None:
        self.number = 0
        self.began = False
        self.done = ""
        self._said = False

    def watch(self) -> None:
        """Take these signals over, except those that this process was started to ignore."""
        for number in _ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._heard)
        sys.unraisablehook = self._unraisable

    def ignore(self) -> None:
        """Let no signal disturb what is left to do; that is short."""
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)

    def message(self) -> str:
        """What is to be said of an interruption; empty the second time."""
        said, self._said = self._said, True
        if said:
            return ""
        return f"interrupted; the campaign has ended: {self.done}" if self.done else INTERRUPTED

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if self.number or not self.began:
            self._leave(number)
        self.number = number
        raise KeyboardInterrupt

    def _unraisable(self, unraisable: sys.UnraisableHookArgs) -> None:
        """An interruption in a callback of the interpreter is not lost."""
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            self._leave(self.number or int(signal.SIGINT))
        sys.__unraisablehook__(unraisable)

    def _leave(self, number: int) -> None:
        message = self.message()
        for descriptor, data in (
            (1, _SHOW_CURSOR if os.isatty(1) else b""),
            (2, f"{message}\n".encode() if message else b""),
        ):
            try:  # noqa: SIM105 - contextlib would have to be imported
                os.write(descriptor, data)
            except OSError:
                pass  # nobody reads it
        os._exit(128 + number)


SIGNALS = Signals()
"""Those of this process."""


class _Patient(io.FileIO):
    """A standard stream that may be lost: what is written to it then goes nowhere.

    A reader that has seen enough (``| head``) must not end a campaign or change its exit code.
    """

    lost: OSError | None = None

    def write(self, data: Any, /) -> int:
        if self.lost is None:
            try:
                return super().write(data)
            except OSError as error:
                # Not the error itself: it holds every frame that led to it, and all that is there.
                self.lost = OSError(error.errno, error.strerror)
        return memoryview(data).nbytes


class Process:
    """Use as a context manager, around all that the command line does."""

    def __init__(self) -> None:
        self._streams: list[_Patient] = []

    def __enter__(self) -> Self:
        SIGNALS.watch()
        _fill_standard_descriptors()
        sys.stdout = self._patient(1, sys.stdout)
        sys.stderr = self._patient(2, sys.stderr)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        SIGNALS.ignore()

    def code(self, code: int) -> int:
        """The exit code, after all has been said: that of the signal, if there was one; and not
        that of a verdict, if what was said of it is lost.
        """
        sys.stdout.flush()
        lost = self._streams[0].lost
        if lost is not None and not isinstance(lost, BrokenPipeError):
            print(  # noqa: T201 - it is the last thing that is said
                f"chaoskit: standard output cannot be written: {lost.strerror}; "
                "chaoskit report shows a stored run again",
                file=sys.stderr,
            )
            code = 2
        return 128 + SIGNALS.number if SIGNALS.number else code

    def _patient(self, descriptor: int, given: Any) -> io.TextIOWrapper:
        if given is not None:
            given.flush()
        raw = _Patient(descriptor, "w", closefd=False)
        self._streams.append(raw)
        return io.TextIOWrapper(
            io.BufferedWriter(raw),
            encoding=given.encoding if given is not None else "utf-8",
            errors="backslashreplace",
            line_buffering=given.line_buffering if given is not None else False,
            write_through=descriptor == 2,
        )


def check_output() -> None:
    """See that somebody reads standard output, for a command that is of no use otherwise.

    Raises:
        BrokenPipeError: nobody does any more.
    """
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(raw, _Patient) and raw.lost is not None:
        raise BrokenPipeError


def _fill_standard_descriptors() -> None:
    """Open what was closed (``>&-``), so that no file of ours becomes standard output."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            lowest = os.open(os.devnull, os.O_RDWR)  # that is free, which is this one
            os.set_inheritable(lowest, True)
