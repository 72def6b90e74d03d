"""Finding every process below one root, while they come and go."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from chaoskit.trial import process_tree

ROOT = """
import ctypes, json, os, signal, subprocess, sys
import psutil
from chaoskit.trial import process_tree

SUBREAPER = 36
ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
if AT_ONCE:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)

def look():
    found = process_tree.descendants(os.getpid())
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    return found

read, _ = os.pipe()
link = (
    f"import os, select\\nwhile not select.select([{read}], [], [], 0)[0]:\\n"
    "    if os.fork(): break\\n"
)
first = subprocess.Popen([sys.executable, "-c", link], pass_fds=[read])
while len(psutil.Process().children()) < DEAD:
    pass
while look() == [first.pid]:
    pass
empty = sum(not look() for _ in range(500))
process_tree.kill(os.getpid())
print(json.dumps({"empty": empty, "left": look()}))
"""
"""A root that adopts orphans, above a chain of processes: each starts the next one and ends. The
chain ends with the root, whose end of the pipe is then gone: an interrupted test leaves nothing.
"""


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")
@pytest.mark.parametrize(
    ("at_once", "dead"),
    [(True, 0), (False, 0), (False, 300)],
    ids=["gone-at-once", "zombies", "many-zombies"],
)
def test_a_chain_of_processes_is_never_taken_for_none(dead: int, *, at_once: bool) -> None:
    """One of them is always alive, and is found, whether the dead ones vanish at once or are taken
    in between two looks, or not for a long time; a kill ends the last of them.
    """
    source = ROOT.replace("AT_ONCE", str(at_once)).replace("DEAD", str(dead))
    ran = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True, timeout=500
    )
    assert json.loads(ran.stdout) == {"empty": 0, "left": []}


# A busy machine.


@pytest.fixture
def family() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A root that starts a child, and the child's pid: it spins until its input ends, for ever
    where nobody ends it.
    """
    spin = "import select; [0 for _ in iter(lambda: select.select([0], [], [], 0)[0], [0])]"
    start = (
        "import signal, subprocess, sys; "
        f"child = subprocess.Popen([sys.executable, '-c', {spin!r}]); "
        "print(child.pid, flush=True); signal.pause()"
    )
    root = subprocess.Popen(
        [sys.executable, "-c", start], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert root.stdin is not None
    assert root.stdout is not None
    yield root, int(root.stdout.readline())
    process_tree.kill(root.pid)
    root.kill()
    root.wait()
    root.stdin.close()
    root.stdout.close()


Family = tuple[subprocess.Popen[bytes], int]


@contextmanager
def beside_a_rival(pid: int) -> Iterator[int]:
    """A process is left one processor, and so is a busy one, whose pid this is."""
    (cpu, *_) = os.sched_getaffinity(pid)
    rival = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        for one in (pid, rival.pid):
            os.sched_setaffinity(one, {cpu})
        yield rival.pid
    finally:
        rival.kill()
        rival.wait()


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the kernel does not tell")
def test_how_long_a_process_waits_for_a_processor_is_known(family: Family) -> None:
    """Two that want the same one wait for each other; one that does not exist waits for nothing."""
    _, pid = family
    with beside_a_rival(pid) as rival:
        before = process_tree.waited_s(pid)
        while process_tree.waited_s(pid) == before:
            os.sched_yield()
    assert process_tree.waited_s(rival) == 0


def test_time_without_a_processor_makes_nobody_a_leftover(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that ends as soon as it is let has all the time that it needs on a busy machine."""
    root, pid = family
    assert root.stdin is not None
    let = root.stdin.close
    looks = iter(range(5))

    def waited_s(of: int) -> float:
        if of == pid and next(looks, None) is None:
            let()
        return time.monotonic() if of == pid else 0.0

    monkeypatch.setattr(process_tree, "waited_s", waited_s)
    monkeypatch.setattr(process_tree, "_BUSIEST", float("inf"))  # a machine as busy as can be
    assert process_tree.await_end(root.pid, 0.02) == []


@pytest.mark.parametrize("busy", [True, False])
def test_who_does_not_end_is_a_leftover_however_busy_the_machine(
    family: Family, monkeypatch: pytest.MonkeyPatch, *, busy: bool
) -> None:
    """It is named, be it that it never gets a processor."""
    root, pid = family
    monkeypatch.setattr(process_tree, "waited_s", lambda _: time.monotonic() if busy else 0.0)
    (left,) = process_tree.await_end(root.pid, 0.01)
    assert "select" in left
    assert psutil.pid_exists(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="processors are chosen on Linux only")
def test_who_is_frozen_stands_still_however_busy_the_machine(family: Family) -> None:
    """A process that gets next to no time is waited for until it has stopped."""
    root, pid = family
    with beside_a_rival(pid):
        os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
        for _ in range(10):
            assert pid in process_tree.freeze(root.pid)
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
            process_tree.thaw(root.pid)
            assert stat.rpartition(") ")[2][0] == "T"
