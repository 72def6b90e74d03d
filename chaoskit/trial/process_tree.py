"""Every process that descends from one root, held still and killed as a whole.

The root is the launcher, which adopts orphans (``PR_SET_CHILD_SUBREAPER``), so that a daemon of
the task's stays below it however it detached itself.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path

import psutil

_ROUNDS_MAX = 1000
"""A tree that still grows after so many rounds is a fork bomb that outruns us."""

_STANDS_STILL = {*"TtZXx", psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE}
_WAITS_IN_THE_KERNEL = {"D", psutil.STATUS_DISK_SLEEP}

_STOP_TIMEOUT_S = 300.0
"""Who was sent a signal stops when it gets a processor: on a busy machine one of low priority waits
for that much longer than 10 s.
"""
_DEATH_TIMEOUT_MS = 10_000

_BUSIEST = 20
"""However busy the machine, a process is waited for at most so many times as long as was asked."""


def descendants(root: int) -> list[int]:
    """The pids below ``root``, parents first, without those that are already dead.

    A process that ends while we look leaves its children to ``root``, whose list may have been read
    already: we look again until nobody has ended meanwhile.
    """
    dead: set[int] = set()
    for _ in range(_ROUNDS_MAX):
        found = _below(root, dead)
        alive = [pid for pid in found if _alive(pid)]
        if len(alive) == len(found):
            break
        dead |= set(found).difference(alive)
    return alive


def _below(root: int, dead: AbstractSet[int]) -> list[int]:
    """All of them, as one look finds them, but for those that are known to be dead: they have no
    children, and to look at many of them each time would take longer than the next one lives.
    """
    try:
        return _from_proc(root, dead)
    except FileNotFoundError:
        return [pid for pid in _from_psutil(root) if pid not in dead]


def _from_proc(root: int, dead: AbstractSet[int]) -> list[int]:
    """Linux with CONFIG_PROC_CHILDREN: some 20 µs, where a scan of all processes takes 1 ms."""
    found: list[int] = []
    queue = [root]
    while queue:
        pid = queue.pop(0)
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except (FileNotFoundError, ProcessLookupError):
            if pid == root:
                raise FileNotFoundError from None
            continue
        for thread in threads:
            try:
                text = Path(f"/proc/{pid}/task/{thread}/children").read_text(encoding="ascii")
            except (FileNotFoundError, ProcessLookupError):
                if not Path(f"/proc/{pid}").exists():
                    break  # it ended while we looked
                if Path(f"/proc/{pid}/task/{thread}").exists():
                    raise FileNotFoundError from None  # this kernel does not list children
                continue
            children = [pid for pid in map(int, text.split()) if pid not in dead]
            found.extend(children)
            queue.extend(children)
    return found


def _from_psutil(root: int) -> list[int]:
    with suppress(psutil.NoSuchProcess):
        return [child.pid for child in psutil.Process(root).children(recursive=True)]
    return []


def _alive(pid: int) -> bool:
    """Whether anything of the process still runs: its first thread may end before the others."""
    with suppress(psutil.Error):
        if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            return True
        with suppress(OSError):
            return len(os.listdir(f"/proc/{pid}/task")) > 1
    return False


def freeze(root: int) -> list[int]:
    """Stop every descendant of ``root`` and wait until each stands still; their pids."""
    stopped: list[int] = []
    for _ in range(_ROUNDS_MAX):
        fresh = [pid for pid in descendants(root) if pid not in stopped]
        if not fresh:
            break
        _signal(fresh, signal.SIGSTOP)
        for pid in fresh:
            _await_stop(pid)
        stopped.extend(fresh)
    return stopped


def thaw(root: int) -> None:
    """Let every descendant of ``root`` go on."""
    _signal(descendants(root), signal.SIGCONT)


def is_single(root: int) -> bool:
    """Whether only one thread runs below ``root``: where it waits, nothing else moves."""
    pids = descendants(root)
    return len(pids) == 1 and all(
        p is not None and p.num_threads() == 1 for p in map(_process, pids)
    )


def _await_stop(pid: int) -> None:
    """A stop signal is honoured before the next instruction in user mode; see it happen, in every
    thread: one that waits for a processor is still to finish its call.

    Who waits for a child to run another program (vfork) may do so until both are let go.
    """
    rounds = 0
    deadline = time.monotonic() + _STOP_TIMEOUT_S
    while moving := _states(pid) - _STANDS_STILL:
        rounds += moving <= _WAITS_IN_THE_KERNEL
        if rounds > _ROUNDS_MAX or time.monotonic() > deadline:
            return
        os.sched_yield()


def _states(pid: int) -> set[str]:
    """The states of a process's threads, in the letters of /proc or the words of psutil."""
    found = set()
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError):
                stat = Path(f"/proc/{pid}/task/{thread}/stat").read_bytes()
                found.add(stat.rpartition(b") ")[2][:1].decode())
    except OSError:
        with suppress(psutil.Error):
            found.add(psutil.Process(pid).status())
    return found


def kill(root: int) -> list[int]:
    """SIGKILL every descendant of ``root`` at one moment, and wait until all are dead.

    A lone process is killed at once. Several are stopped first, so that none of them does
    anything more while its relatives are being killed.

    Returns:
        The pids that were killed.
    """
    killed: list[int] = []
    for _ in range(_ROUNDS_MAX):
        alive = [pid for pid in descendants(root) if pid not in killed]
        if not alive:
            break
        if len(alive) > 1:
            alive = [pid for pid in freeze(root) if pid not in killed] or alive
        deaths = _Deaths(alive)
        _signal(alive, signal.SIGKILL)
        deaths.wait()
        killed.extend(alive)
    return killed


def kill_alone(pid: int) -> None:
    """SIGKILL one process, and wait until it is dead; what it had opened is closed then."""
    deaths = _Deaths([pid])
    _signal([pid], signal.SIGKILL)
    deaths.wait()


def await_end(root: int, timeout_s: float) -> list[str]:
    """Wait until ``root`` has no living descendant; the command lines of those that remain.

    The time does not run while one of them, or this process, whose services it may be waiting for,
    waits for a processor: that the machine is busy is not the task's doing.
    """
    began = time.monotonic()
    alive = descendants(root)
    before = {pid: waited_s(pid) for pid in (os.getpid(), *alive)}
    while alive:
        passed_s = time.monotonic() - began
        ours_s = waited_s(os.getpid()) - before[os.getpid()]
        theirs_s = max(waited_s(pid) - before.get(pid, 0.0) for pid in alive)
        left_s = timeout_s - max(passed_s - ours_s - theirs_s, passed_s / _BUSIEST)
        if left_s <= 0:
            return [command_line(pid) for pid in descendants(root)]
        _Deaths(alive).wait(int(left_s * 1000) + 1)
        alive = descendants(root)
    return []


def waited_s(pid: int) -> float:
    """For how long a process has been ready to run without a processor, in seconds: the thread for
    which that was longest. 0 where the kernel does not tell (Documentation/scheduler/sched-stats).
    """
    waits = [0]
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError, IndexError):
                text = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text(encoding="ascii")
                waits.append(int(text.split()[1]))
    return max(waits) / 1e9


def command_line(pid: int) -> str:
    """How a process calls itself, for reports."""
    with suppress(psutil.Error):
        words = psutil.Process(pid).cmdline()
        if words:
            shown = os.fsencode(" ".join(words)).decode(errors="backslashreplace")
            return shown[:200]
    return f"process {pid}"


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


class _Deaths:
    """Waits until processes are dead: by pidfd on Linux, by asking again and again elsewhere."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = list(pids)
        self._watches: list[int] = []
        if hasattr(os, "pidfd_open"):
            for pid in self._pids:
                with suppress(ProcessLookupError):
                    self._watches.append(os.pidfd_open(pid))

    def wait(self, timeout_ms: int = _DEATH_TIMEOUT_MS) -> bool:
        """Whether all of them are dead, after at most ``timeout_ms`` for each."""
        if not hasattr(os, "pidfd_open"):
            found = [p for p in map(_process, self._pids) if p is not None]
            return not psutil.wait_procs(found, timeout_ms / 1000)[1]
        try:
            return all(_readable(watch, timeout_ms) for watch in self._watches)
        finally:
            for watch in self._watches:
                os.close(watch)


def _readable(watch: int, timeout_ms: int) -> bool:
    poll = select.poll()
    poll.register(watch, select.POLLIN)
    return bool(poll.poll(timeout_ms))


def _process(pid: int) -> psutil.Process | None:
    with suppress(psutil.Error):
        return psutil.Process(pid)
    return None
