"""Copies of the world at system calls: what a resume from one shows is what a real kill shows."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chaoskit.explore.plan import sweep
from chaoskit.model.events import (
    AttemptEnded,
    EffectApplied,
    ReplySent,
    RequestReceived,
    TraceNoted,
)
from chaoskit.model.history import History
from chaoskit.model.points import CallPoint, Point, parse_point
from chaoskit.model.schedule import Schedule, kill
from chaoskit.model.token import CommandSpec
from chaoskit.trace.abi import this_abi
from chaoskit.trial.files import remove
from chaoskit.trial.snapshots import Camera, Contents, Entry, Snapshot
from chaoskit.trial.supervisor import Supervisor
from tests.trial.traced import (
    NOTHING,
    files_in,
    history_of,
    python,
    scenario,
    state_of,
    with_supervisor,
)

needs_tracing = pytest.mark.skipif(
    this_abi() is None, reason="system calls are traced on Linux on x86_64 and aarch64 only"
)


async def album_of(supervisor: Supervisor, points: Sequence[Point]) -> dict[Point, Snapshot]:
    """The worlds that a kill at each of these points would leave."""
    album = await supervisor.record([kill(point) for point in points])
    return {fault.point: snapshot for fault, snapshot in album.items()}


def plain(history: History) -> dict[int, list[str]]:
    """What must be the same: the events of each attempt, but for their order, times and numbers."""
    found: dict[int, list[str]] = {}
    for event in history.events:
        body = event.body
        if isinstance(body, RequestReceived | ReplySent):
            body = msgspec.structs.replace(body, request=0)
        if isinstance(body, EffectApplied) and body.request is not None:
            body = msgspec.structs.replace(body, request=0)
        if isinstance(body, AttemptEnded):
            body = msgspec.structs.replace(body, seconds=0.0, output_bytes=0, output_tail="")
        if not isinstance(body, TraceNoted):  # said when a process ends, and nobody ends in a copy
            found.setdefault(getattr(body, "attempt", 0), []).append(repr(body))
    return {attempt: sorted(texts) for attempt, texts in found.items()}


# A trial from a copy is the trial.

CHARGES = """
import http.client, json, os, sqlite3, subprocess, urllib.parse
from chaoskit import Scenario

def charge(n):
    url = urllib.parse.urlsplit(os.environ["CHAOSKIT_PAYMENTS_URL"])
    shop = http.client.HTTPConnection(url.hostname, url.port)
    shop.request("POST", "/v1/charges", f"amount={n}00&currency=eur&source=tok_visa",
                 {"Authorization": "Bearer sk_test_x",
                  "Content-Type": "application/x-www-form-urlencoded"})
    return json.loads(shop.getresponse().read())["id"]

def in_files():
    for n in (1, 2):
        if os.path.exists(f"done-{n}"):
            continue
        ref = charge(n)
        with open("new", "w") as file:
            file.write(ref * 200)
            file.flush()
            os.fsync(file.fileno())
        os.rename("new", f"done-{n}")

def in_a_table(steps={1}):
    books = sqlite3.connect("run.db", isolation_level=None)
    books.execute("PRAGMA journal_mode = WAL")
    books.execute("CREATE TABLE IF NOT EXISTS done (n PRIMARY KEY)")
    done = {n for (n,) in books.execute("SELECT n FROM done")}
    for n in steps - done:
        charge(n)
        books.execute("INSERT INTO done VALUES (?)", (n,))

def by_a_child():
    for n in (1,):
        if not os.path.exists(f"done-{n}"):
            if os.fork() == 0:
                charge(n)
                open(f"done-{n}", "w").close()
                os._exit(0)
            os.wait()

in_files = Scenario(task=in_files, services=("payments",))
in_a_table = Scenario(task=in_a_table, services=("payments",))
by_a_child = Scenario(task=by_a_child, services=("payments",))
"""


@needs_tracing
@pytest.mark.parametrize("name", ["in_files", "in_a_table", "by_a_child"])
def test_every_history_from_a_copy_is_that_of_the_kill(tmp_path: Path, name: str) -> None:
    """For every call (before, after, cut short) and every window: the same events per attempt."""

    async def then(supervisor: Supervisor) -> None:
        points, odd = sweep(await supervisor.survey(), ("calls", "windows"))
        assert not odd
        assert len(points) > 10
        album = await album_of(supervisor, points)
        assert set(album) == set(points)
        for point, snapshot in album.items():
            schedule = Schedule(((kill(point),),))
            copied = await supervisor.resume(snapshot, schedule)
            end = state_of(supervisor)
            real = await supervisor.run(schedule)
            assert plain(copied) == plain(real), str(point)
            assert list(end) == list(state_of(supervisor)), str(point)

    with_supervisor(scenario(tmp_path, CHARGES, name), then)


WRITES = """
import os
with open("a", "wb", buffering=0) as file:
    text = b"0123456789" * 1000
    assert file.write(text) == 10000
    assert os.pwrite(file.fileno(), text, 20000) == 10000
    assert file.tell() == 10000
    assert file.write(text) == 10000
os.mkdir("d")
"""


@needs_tracing
def test_one_write_is_met_in_many_places_and_is_whole_at_the_end() -> None:
    """A copy at each cut has just the bytes before it, and the task sees one call that did all."""
    cuts = [1, 4096, 5000, 9999]
    text = b"0123456789" * 1000
    points = [CallPoint("write", "a", 1, "short", cut) for cut in cuts]
    points += [CallPoint("pwrite", "a", 1, "short", cut) for cut in cuts]
    points += [CallPoint("write", "a", 2), CallPoint("write", "a", 2, "short", 7)]
    points += [CallPoint("write", "a", 2, "after"), CallPoint("mkdir", "d", 1)]
    half = text + bytes(10000)
    expected = [
        *(text[:cut] for cut in cuts),
        *(half + text[:cut] for cut in cuts),
        half + text,
        text + text[:7] + bytes(9993) + text,
        text + text + text,
        text + text + text,
    ]

    async def then(supervisor: Supervisor) -> None:
        album = await album_of(supervisor, points)
        assert list(album) == points
        for snapshot, content in zip(album.values(), expected, strict=True):
            assert content_of(supervisor, snapshot.tree["state/a"]) == content
        history = album[points[-1]].log.so_far()
        assert history
        (ended,) = [body for _, body in (await supervisor.run(Schedule())).attempts]
        assert (ended.how, ended.code) == ("exit", 0), ended.output_tail

    with_supervisor(python(WRITES), then)


REGISTERS = """
    #include <fcntl.h>
    #include <stdlib.h>
    #include <string.h>
    int main() {
        char *buffer = malloc(9000);
        memset(buffer, 'x', 9000);
        long file = open("a", O_CREAT | O_WRONLY, 0600);
        for (long number = 1; number <= 18; number += 17) {  /* write and pwrite64 */
            register long r10 __asm__("r10") = 100, r8 __asm__("r8") = 8, r9 __asm__("r9") = 9;
            long result = number, di = file, si = (long)buffer, dx = 9000;
            __asm__ volatile("syscall" : "+a"(result), "+D"(di), "+S"(si), "+d"(dx), "+r"(r10),
                             "+r"(r8), "+r"(r9) : : "rcx", "r11", "memory");
            if (result != 9000) return 1;
            if (di != file || si != (long)buffer || dx != 9000) return 2;
            if (r10 != 100 || r8 != 8 || r9 != 9) return 3;
        }
        return 0;
    }
"""


def content_of(supervisor: Supervisor, entry: Entry) -> bytes:
    """The bytes of a file in a snapshot, its holes as NULs."""
    content = bytearray(entry.size)
    for at, piece in supervisor.world.contents.segments(entry):
        content[at : at + len(piece)] = piece
    return bytes(content)


@needs_tracing
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="looks at the registers of x86_64")
def test_a_call_that_was_met_in_pieces_leaves_the_registers_as_they_were(tmp_path: Path) -> None:
    """The result is that of the whole call, and no argument has another value afterwards."""
    from tests.trial.test_calls import compiled

    program = compiled(tmp_path, REGISTERS)
    points: list[Point] = [
        CallPoint(call, "a", 1, "short", cut) for call in ("write", "pwrite") for cut in (1, 5000)
    ]

    async def then(supervisor: Supervisor) -> None:
        assert list(await album_of(supervisor, points)) == points
        (only,) = history_of(supervisor).attempts
        assert (only[1].how, only[1].code) == ("exit", 0)

    with_supervisor(CommandSpec(command=(program,), resume=NOTHING), then)


SAME_SIGNS = """
import os
for n in range(6):
    with open("a", "r+b" if n else "wb") as file:
        file.write(b"version %d" % n)
    os.utime("a", (1, 1))
    os.mkdir(f"d{n}")
"""


@needs_tracing
@pytest.mark.parametrize("tracing", [True, False])
def test_a_copy_at_a_few_calls_has_what_happened_between_them(*, tracing: bool) -> None:
    """Also where no call in between was looked at, and the file looks the same from outside."""
    points = [parse_point(f"mkdir(d{n})#1") for n in (0, 2, 5)]

    async def then(supervisor: Supervisor) -> None:
        supervisor.conduct = replace(supervisor.conduct, calls=tracing)
        album = await album_of(supervisor, points)
        contents = supervisor.world.contents
        seen = [contents[album[point].tree["state/a"].content] for point in points]
        assert seen == [b"version 0", b"version 2", b"version 5"]

    with_supervisor(python(SAME_SIGNS), then)


# What is put back.


def made(folder: Path) -> None:
    """A little of everything that a folder may hold."""
    folder.mkdir(exist_ok=True)
    (folder / "empty").mkdir()
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "file").write_bytes(bytes(range(256)) * 40)
    (folder / "nothing").touch()
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o751)
    (folder / "read only").write_text("x")
    (folder / "read only").chmod(0o444)
    (folder / "link").symlink_to("deep/er/file")
    (folder / "dangling").symlink_to("../nowhere")
    (folder / "folder link").symlink_to("deep")
    (folder / "größe").write_text("ß")
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff\xfe")).write_bytes(b"\0\1")
    locked = folder / "locked"
    locked.mkdir()
    (locked / "inside").write_text("x")
    for number, path in enumerate(sorted(folder.rglob("*"))):
        if path.is_file() and not path.is_symlink():
            os.utime(path, ns=(number, 1_000_000_007 * number))
    locked.chmod(0o555)
    (folder / "deep").chmod(0o700)


def times_in(folder: Path) -> dict[str, int]:
    """When each file was last changed."""
    return {
        str(path.relative_to(folder)): path.lstat().st_mtime_ns
        for path in folder.rglob("*")
        if stat.S_ISREG(path.lstat().st_mode)
    }


def test_a_world_is_put_back_byte_for_byte(tmp_path: Path) -> None:
    """Files, modes, links, empty folders and times of change, whatever is there instead."""
    folders = {name: tmp_path / name for name in ("state", "services")}
    for folder in folders.values():
        made(folder)
    camera = Camera(folders, Contents())
    tree = camera.take()
    before = {name: (files_in(f), times_in(f)) for name, f in folders.items()}
    (folders["state"] / "deep" / "er" / "file").write_bytes(b"other")
    (folders["state"] / "empty").rmdir()
    (folders["state"] / "empty").symlink_to("deep")
    (folders["state"] / "new").mkdir()
    remove(str(folders["services"]))  # whatever rights it gives its owner
    folders["services"].mkdir()
    for _ in range(2):
        camera.put_back(tree, folders)
        after = {name: (files_in(f), times_in(f)) for name, f in folders.items()}
        assert after == before
        assert camera.take([]) == tree


NAMES = ("a", "b", "d", "d/a", "d/b", "e", "e/a")
CONTENTS = st.sampled_from([b"", b"one", b"two", b"longer"])
KINDS = ("write", "overwrite", "rename", "unlink", "mkdir", "rmdir", "symlink", "link", "chmod")
OPERATIONS = st.tuples(
    st.sampled_from(KINDS), st.sampled_from(NAMES), st.sampled_from(NAMES), CONTENTS
)


def done(folder: Path, operation: tuple[str, str, str, bytes]) -> list[str]:
    """Do something to the files; the paths that the tracer would name."""
    kind, name, other, content = operation
    path, target = folder / name, folder / other
    inside = os.path.realpath(path)  # a descriptor's name has no links in it
    ways: dict[str, tuple[Callable[[], object], list[str]]] = {
        "write": (lambda: path.write_bytes(content), [str(path), inside]),
        "overwrite": (lambda: overwrite(path, content), [inside]),
        "rename": (lambda: path.rename(target), [str(path), str(target)]),
        "unlink": (path.unlink, [str(path)]),
        "mkdir": (path.mkdir, [str(path)]),
        "rmdir": (path.rmdir, [str(path)]),
        "symlink": (lambda: path.symlink_to(other), [str(path)]),
        "link": (lambda: os.link(path, target), [str(path), str(target)]),
        "chmod": (lambda: path.chmod(0o600 if content else 0o644), [str(path)]),
    }
    do, changed = ways[kind]
    try:
        do()
    except OSError:
        return []  # a call that fails changes nothing
    return changed


def overwrite(path: Path, content: bytes) -> None:
    """Write into a file that is there, without truncating it."""
    with path.open("r+b") as file:
        file.write(content)


ONE, TWO = b"one", b"two"


@settings(max_examples=300)
@given(st.lists(st.lists(OPERATIONS, min_size=1, max_size=4), min_size=1, max_size=8))
@example([[("write", "a", "a", ONE)], [("overwrite", "a", "a", TWO)]])
@example([[("write", "a", "a", ONE), ("link", "a", "b", b"")], [("overwrite", "a", "a", TWO)]])
@example([[("write", "a", "a", ONE), ("symlink", "b", "a", b"")], [("overwrite", "b", "a", TWO)]])
@example(
    [
        [("mkdir", "d", "d", b""), ("write", "d/a", "a", ONE)],
        [("rename", "d", "e", b""), ("overwrite", "e/a", "a", TWO), ("rename", "e", "d", b"")],
    ]
)
def test_a_look_at_what_has_changed_sees_what_a_full_look_sees(
    rounds: list[list[tuple[str, str, str, bytes]]],
) -> None:
    """However files are written, moved and linked, and although time stands still meanwhile."""
    with tempfile.TemporaryDirectory() as made_folder:
        folder = Path(made_folder).resolve()
        contents = Contents()
        quick = Camera({"state": folder}, contents)
        quick.take()
        for operations in rounds:
            changed = [path for operation in operations for path in done(folder, operation)]
            for path in folder.rglob("*"):  # as on a file system whose clock ticks slowly
                if not path.is_symlink():
                    os.utime(path, ns=(0, 0))
            assert quick.take(changed) == Camera({"state": folder}, contents).take()
