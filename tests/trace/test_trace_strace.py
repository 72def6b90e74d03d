"""The tracer against strace: both see the same calls of the same program."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from chaoskit.model.events import CallSeen
from chaoskit.model.points import CallPoint, parse_point
from chaoskit.model.schedule import Schedule
from chaoskit.model.token import CommandSpec, Target
from chaoskit.trace import OUTSIDE
from chaoskit.trace.abi import ABIS, Kind, this_abi
from chaoskit.trace.naming import _encoded
from chaoskit.trial.loading import load
from chaoskit.trial.supervisor import Supervisor

PROGRAM = """
import os, shutil, sqlite3, subprocess, sys, tempfile, threading
open("a.txt", "w").write("one")
with open("a.txt", "r+b", buffering=0) as file:
    file.write(b"two")
    os.pwrite(file.fileno(), b"x", 1)
    os.writev(file.fileno(), [b"y", b"z"])
    os.pwritev(file.fileno(), [b"y", b"z"], 0)
    os.ftruncate(file.fileno(), 2)
    os.fsync(file.fileno())
    os.fdatasync(file.fileno())
    os.fchmod(file.fileno(), 0o600)
    os.posix_fallocate(file.fileno(), 0, 8192)
os.truncate("a.txt", 5)
os.mkdir("sub dir")
os.rename("a.txt", "sub dir/b.txt")
os.replace("sub dir/b.txt", "c.txt")
os.link("c.txt", "d.txt")
os.symlink("c.txt", "e.txt")
os.chmod("c.txt", 0o644)
os.utime("c.txt", (1, 1))
os.unlink("d.txt")
os.remove("e.txt")
os.rmdir("sub dir")
folder = os.open(".", os.O_RDONLY)
os.close(os.open("f.txt", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
os.mkdir("g", dir_fd=folder)
os.rename("f.txt", "g/f.txt", src_dir_fd=folder)
os.fsync(folder)
shutil.copyfile("c.txt", "h.txt")
shutil.rmtree("g")
with tempfile.NamedTemporaryFile("w", dir=".") as file:
    file.write("x")
open("../elsewhere.txt", "w").write("not counted")
print("not counted either")
open("c.txt").read()
books = sqlite3.connect("run.db", isolation_level=None)
books.execute("PRAGMA journal_mode = WAL")
books.execute("CREATE TABLE t (a)")
books.execute("INSERT INTO t VALUES (1)")
books.close()
thread = threading.Thread(target=lambda: open("thread.txt", "w").write("t"))
thread.start(); thread.join()
subprocess.run([sys.executable, "-c", "open('child.txt', 'w').write('c'); import os; os.sync()"])
pid = os.fork()
if pid == 0:
    open("forked.txt", "w").write("f")
    os._exit(0)
os.waitpid(pid, 0)
"""

pytestmark = [
    pytest.mark.skipif(this_abi() is None, reason="system calls are traced on Linux only"),
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed"),
]


def by_the_tracer(tmp_path: Path) -> dict[str, list[tuple[str, str]]]:
    """Call and target of every point, by process."""

    async def go() -> list[CallPoint]:
        spec = CommandSpec(command=(sys.executable, "-c", PROGRAM))
        async with Supervisor(load(Target(command=spec)), 0, tmp_path) as supervisor:
            supervisor.conduct = replace(supervisor.conduct, calls=True)
            history = await supervisor.run(Schedule())
        assert history.completed, history.last.output_tail
        found = [parse_point(seen.call) for _, seen in history.of(CallSeen)]
        return [point for point in found if isinstance(point, CallPoint)]

    seen: dict[str, list[tuple[str, str]]] = {}
    for point in asyncio.run(go()):
        seen.setdefault(point.who, []).append((point.call, point.target))
    return seen


LINE = re.compile(r"(?P<thread>\d+) +(?P<call>\w+)\((?P<rest>.*)")
BORN = re.compile(r"= (?P<thread>\d+)$")
CREATES = re.compile(r"O_CREAT|O_TRUNC|O_TMPFILE")
PATH = r'"((?:[^"\\]|\\.)*)"'
PLAIN = re.compile(f"(){PATH}")
AT = re.compile(rf"(?:AT_FDCWD|\d+)(?:<([^>]*)>)?, {PATH}")
NUMBER = re.compile(r"\d+<([^>]*)>()")
ABI = ABIS["x86_64"]
KINDS = {name: ABI.kinds()[n] for name, n in ABI.numbers.items() if n in ABI.kinds()}


def by_strace(tmp_path: Path) -> list[list[tuple[str, str]]]:
    """The same by strace's own log, by process, in the order of their births."""
    work, log = tmp_path / "strace", tmp_path / "strace.log"
    work.mkdir()
    calls = "trace=" + ",".join(f"?{name}" for name in (*KINDS, "clone", "clone3"))
    words = ["strace", "-f", "-y", "-s", "4096", "-o", str(log), "-e", calls]
    subprocess.run(
        [*words, sys.executable, "-c", PROGRAM],
        cwd=work,
        check=True,
        timeout=500,  # it syncs every disk
        capture_output=True,
    )
    seen: dict[str, list[tuple[str, str]]] = {}
    of: dict[str, str] = {}
    for line in log.read_text("utf-8").splitlines():
        found = LINE.match(line)
        if found is None:
            continue
        mine = seen.setdefault(of.get(found["thread"], found["thread"]), [])
        if "CLONE_THREAD" in line and (born := BORN.search(line)):
            of[born["thread"]] = of.get(found["thread"], found["thread"])
        kind = KINDS.get(found["call"])
        if kind is not None and kind.shape not in {"map", "connect"}:
            target = strace_target(kind, found["rest"], work)
            if target is not None:
                mine.append((kind.name, target))
    return list(seen.values())


def strace_target(kind: Kind, rest: str, work: Path) -> str | None:
    """The files that strace says a call is about, in our words; None: nothing of ours."""
    if kind.name == "open" and not CREATES.search(rest):
        return None
    match kind.shape:
        case "all":
            return ""
        case "path" | "two":
            found = PLAIN.findall(rest)[kind.at :][: 2 if kind.shape == "two" else 1]
        case "at" | "open2" | "two-at":
            found = AT.findall(rest)[: 2 if kind.shape == "two-at" else 1]
        case "out":
            found = [pair for pair in NUMBER.findall(rest)[1:2] if pair[0].startswith("/")]
        case _:
            found = [pair for pair in NUMBER.findall(rest)[:1] if pair[0].startswith("/")]
    whole = [os.path.normpath(work / folder / path) for folder, path in found]
    names = [
        _encoded(os.path.relpath(path, work)) if f"{path}/".startswith(f"{work}/") else None
        for path in whole
    ]
    if all(name is None for name in names):
        return None
    return "->".join(name or OUTSIDE for name in names)


def test_the_tracer_sees_what_strace_sees(tmp_path: Path) -> None:
    """For every process of a small program the same calls on the same files in the same order."""
    tmp_path = tmp_path.resolve()
    ours = by_the_tracer(tmp_path)
    theirs = [calls for calls in by_strace(tmp_path) if calls]
    assert list(ours) == ["", "p1", "p2"]
    for mine, other in zip(ours.values(), theirs, strict=True):
        assert mine == other
    assert len(ours[""]) > 50
