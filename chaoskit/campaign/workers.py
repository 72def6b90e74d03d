"""Local workers: processes of `multiprocess` behind the interface of `concurrent.futures`.

Each worker has a thread here that hands it one call at a time; a worker that dies fails its call
and is replaced. When this process goes, its workers are killed by the kernel, and their launchers
kill whatever task is left.
"""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import multiprocess
from multiprocess import resource_tracker

from chaoskit.model.errors import HarnessError, described

_PR_SET_PDEATHSIG = 1
_CLOSE_TIMEOUT_S = 30.0


class Inline(Executor):
    """Performs each call at once, in this process: for debugging and for tests."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call ``fn`` now; the future is already done."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - it belongs to the future
            future.set_exception(error)
        return future


@dataclass(frozen=True, slots=True)
class _Work:
    call: tuple[Callable[..., Any], tuple[Any, ...]]
    future: Future[Any]


class Workers(Executor):
    """``number`` processes, each performing one call at a time.

    Each of them calls ``goodbye`` before it ends by itself.
    """

    def __init__(self, number: int, goodbye: Callable[[], None] = lambda: None) -> None:
        self._goodbye = goodbye
        self._context = multiprocess.get_context("spawn")
        self._work: queue.Queue[_Work | None] = queue.Queue()
        self._processes: set[Any] = set()
        self._closing = threading.Event()
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(number)]
        for thread in self._threads:
            thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue one call of an importable function; keyword arguments are not supported."""
        assert not kwargs
        future: Future[Any] = Future()
        self._work.put(_Work((fn, args), future))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        """Let each worker clean up behind itself and end.

        With ``cancel_futures`` what is queued is dropped and what runs is killed; the launchers
        then do the cleaning up.
        """
        if cancel_futures:
            self._closing.set()
            with suppress(queue.Empty):
                while True:
                    queued = self._work.get_nowait()
                    if queued is not None:
                        queued.future.cancel()
            for process in tuple(self._processes):
                process.kill()
        for _ in self._threads:
            self._work.put(None)
        if wait:
            for thread in self._threads:
                thread.join(_CLOSE_TIMEOUT_S)

    def _serve(self) -> None:
        try:
            process, pipe = self._spawn()
        except Exception as failed:  # noqa: BLE001 - told to whoever waits for a result
            self._refuse(failed)
            return
        while (work := self._work.get()) is not None:
            if self._closing.is_set() or not work.future.set_running_or_notify_cancel():
                work.future.cancel()
                continue
            try:
                pipe.send(work.call)
                result = pipe.recv()
            except (EOFError, OSError):
                self._retire(process, pipe)
                error = f"a worker process ended with status {process.exitcode}"
                work.future.set_exception(HarnessError(error))
                if self._closing.is_set():
                    return
                try:
                    process, pipe = self._spawn()
                except Exception as failed:  # noqa: BLE001 - told to whoever waits for a result
                    self._refuse(failed)
                    return
            else:
                work.future.set_result(result)
        self._retire(process, pipe)

    def _refuse(self, error: Exception) -> None:
        """No process can be started: every call fails with the reason, and none waits for ever."""
        if isinstance(error, OSError):
            why = HarnessError(f"no worker process can be started: {described(error)}")
        else:
            why = HarnessError(
                f"no worker process can be started: {error}; a script that runs a campaign needs "
                'if __name__ == "__main__": around that'
            )
        while (work := self._work.get()) is not None:
            if work.future.set_running_or_notify_cancel():
                work.future.set_exception(why)

    def _spawn(self) -> tuple[Any, Any]:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_life, args=(theirs, os.getpid(), self._goodbye))
        # Ctrl-C is the parent's to handle, also before the worker has come so far as to ignore it.
        # What multiprocess itself starts before the first worker would take the mask away.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self._processes.add(process)
        return process, ours

    def _retire(self, process: Any, pipe: Any) -> None:
        with suppress(OSError):
            pipe.close()
        process.join(_CLOSE_TIMEOUT_S)
        if process.is_alive():
            process.kill()
            process.join()
        self._processes.discard(process)


def _life(pipe: Any, parent: int, goodbye: Callable[[], None]) -> None:
    """The life of a worker process: calls in, results out, until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # no task inherits that
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            return  # it died before we asked to be told
    try:
        while True:
            function, arguments = pipe.recv()
            pipe.send(function(*arguments))
    except (EOFError, OSError):
        goodbye()
