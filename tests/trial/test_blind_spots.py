"""What the tracer cannot follow, and says: rings, mappings that become writable, changes elsewhere.
And what it must not say: calls that failed, and files of which nothing was left.
"""

from __future__ import annotations

import stat
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from chaoskit.campaign.events import Finished
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.model.events import CallSeen
from chaoskit.model.schedule import parse_schedule
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.trace.abi import this_abi
from chaoskit.trial.workspace import default_root
from tests.trial.traced import python, scenario, traced

pytestmark = pytest.mark.skipif(
    this_abi() is None, reason="system calls are traced on Linux on x86_64 and aarch64 only"
)


def notes(*statements: str) -> list[tuple[str, str]]:
    """What is noted of a program that does this and ends well."""
    head = "import ctypes, mmap, os, socket, sys, tempfile"
    (ran,) = traced(python("\n".join([head, *statements])))
    assert ran.ends == ["exit 0"], ran.output
    return ran.notes


# Mappings.

PROTECT = (
    'f = os.open("m", os.O_CREAT | os.O_RDWR)',
    "os.ftruncate(f, 3 * mmap.PAGESIZE)",
    "libc = ctypes.CDLL(None, use_errno=True)",
    "libc.mmap.restype = ctypes.c_void_p",
    "def mapped(flags, protection=1, f=f):",
    "    return libc.mmap(None, 3 * mmap.PAGESIZE, protection, flags, f, ctypes.c_long(0))",
    "def protects(at, protection, call=libc.mprotect):",
    "    key = [] if call == libc.mprotect else [-1]",
    "    return call(ctypes.c_void_p(at), mmap.PAGESIZE, protection, *key)",
)


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("assert protects(mapped(1), 3) == 0", [("mapped", "m")]),
        ("assert protects(mapped(1) + 2 * mmap.PAGESIZE, 3) == 0", [("mapped", "m")]),
        ("assert protects(mapped(1, 0), 2) == 0", [("mapped", "m")]),
        ("assert protects(mapped(1), 3, libc.pkey_mprotect) == 0", [("mapped", "m")]),
        ("assert protects(mapped(1), 1) == 0", []),
        ("assert protects(mapped(1), 5) == 0", []),
        ("assert protects(mapped(2), 3) == 0", []),
        ("assert protects(mapped(0x21, f=-1), 3) == 0", []),
        ('assert protects(mapped(1, f=os.open("m", os.O_RDONLY)), 3) == -1', []),
        ("mapped(1); assert protects(mapped(0x22, f=-1), 3) == 0", []),
        ("at = mapped(1); protects(at, 3); ctypes.memset(at, 1, 1)", [("mapped", "m")]),
    ],
)
def test_a_mapping_that_becomes_writable_is_noted(
    what: str, expected: list[tuple[str, str]]
) -> None:
    """One of a file of the task that is shared, once that has succeeded; no other one."""
    assert notes(*PROTECT, what) == expected


def test_a_mapping_elsewhere_that_becomes_writable_is_a_change_elsewhere(tmp_path: Path) -> None:
    """It is not restored, whoever stores into it."""
    path = tmp_path.resolve() / "m"
    path.write_bytes(bytes(3 * 4096))
    there = f"os.open({str(path)!r}, os.O_RDWR)"
    assert notes(*PROTECT, f"mapped(1, f={there})") == []
    assert notes(*PROTECT, f"protects(mapped(1, f={there}), 3)") == [("outside", str(path))]
    assert notes(*PROTECT, f"mapped(1, 3, f={there})") == [("outside", str(path))]


# Changes elsewhere.


@pytest.mark.parametrize(
    ("what", "left"),
    [
        # calls that fail, or change nothing
        ("os.makedirs(x + '/there', exist_ok=True)", ""),
        ("tries(os.mkdir, x)", ""),
        ("tries(os.mkdir, '/dev')", ""),
        ("tries(os.unlink, x + '/missing')", ""),
        ("tries(os.rmdir, x)", ""),
        ("tries(os.rename, x + '/missing', x + '/other')", ""),
        ("os.open(x + '/file', os.O_CREAT | os.O_RDONLY)", ""),
        ("os.read(os.open(x + '/file', os.O_CREAT | os.O_RDWR), 9)", ""),
        ("os.open(x + '/empty', os.O_CREAT | os.O_TRUNC | os.O_WRONLY)", ""),
        ("os.fsync(os.open(x + '/file', os.O_RDONLY))", ""),
        # what is made and removed at once
        ("tempfile.tempdir = None; tempfile.gettempdir()", ""),
        ("open(x + '/a', 'w').write('a'); os.unlink(x + '/a')", ""),
        (
            "os.mkdir(x + '/d'); open(x + '/d/a', 'w'); os.unlink(x + '/d/a'); os.rmdir(x + '/d')",
            "",
        ),
        ("open(x + '/a', 'w'); os.rename(x + '/a', x + '/b'); os.unlink(x + '/b')", ""),
        ("f = open(x + '/a', 'w'); os.unlink(x + '/a'); f.write('a'); f.flush()", ""),
        ("tempfile.TemporaryFile(dir=x).write(b'a')", ""),
        # what is left, or was there before
        ("open(x + '/a', 'w')", "a"),
        ("os.mkdir(x + '/a')", "a"),
        ("os.mkfifo(x + '/a')", "a"),
        ("socket.socket(socket.AF_UNIX).bind(x + '/a')", "a"),
        ("os.symlink('to', x + '/a')", "a"),
        ("os.link(x + '/file', x + '/a')", "a"),
        ("os.unlink(x + '/file')", "file"),
        ("os.rmdir(x + '/there')", "there"),
        ("os.chmod(x + '/file', 0o600)", "file"),
        ("os.truncate(x + '/file', 1)", "file"),
        ("open(x + '/file', 'w')", "file"),
        ("open(x + '/file', 'a').write('b')", "file"),
        ("open(x + '/a', 'w'); os.rename(x + '/a', x + '/b')", "b"),
        ("os.rename(x + '/file', x + '/b')", "b file"),
        # a lock is there at the points in between, as it would be for a kill
        ("open(x + '/lock', 'w'); open('counts', 'w'); os.unlink(x + '/lock')", "lock"),
        ("os.mkdir(x + '/lock'); open('counts', 'w'); os.rmdir(x + '/lock')", "lock"),
    ],
)
def test_a_change_elsewhere_counts_where_it_was_made_and_left(
    tmp_path: Path, what: str, left: str
) -> None:
    """Not a call that failed, nor a file that was made and removed between two calls that count."""
    x = tmp_path.resolve() / "x"
    (x / "there").mkdir(parents=True)
    (x / "file").write_text("text")
    (x / "empty").touch()
    tries = (
        "def tries(call, *words):",
        "    try:",
        "        call(*words)",
        "    except OSError:",
        "        return",
        "    raise AssertionError",
    )
    found = notes(f"x = {str(x)!r}", *tries, what)
    assert found == [("outside", f"{x}/{name}") for name in left.split()]


def test_a_file_that_comes_from_elsewhere_or_goes_there_is_a_change(tmp_path: Path) -> None:
    """What is renamed into the work folder is missing elsewhere, and the other way round; a link
    to a file elsewhere changes nothing there.
    """
    moves = {
        "os.rename(x + '/one', 'a')": ["one"],
        "open('a', 'w'); os.rename('a', x + '/new')": ["new"],
        "open('a', 'w'); os.link('a', x + '/new')": ["new"],
        "os.link(x + '/one', 'a')": [],
    }
    for statements, left in moves.items():
        with TemporaryDirectory(dir=default_root()) as folder:  # on one file system
            x = Path(folder).resolve()
            (x / "one").touch()
            found = notes(f"x = {str(x)!r}", statements)
            assert found == [("outside", f"{x}/{name}") for name in left], statements


# Sockets and pipes with a name in the work folder.


def test_a_socket_and_a_pipe_in_the_work_folder_are_made_at_points() -> None:
    """bind and mknod change the folder: before them it has no such file, after them it has one."""
    spec = python("""
        import os, socket
        socket.socket(socket.AF_UNIX).bind("control.sock")
        os.mkfifo("pipe")
        socket.socket().bind(("127.0.0.1", 0))
    """)
    points = ["bind(control.sock)#1", "mknod(pipe)#1"]
    (whole,) = traced(spec)
    assert whole.calls == {"": points}
    schedules = [f"kill@{point}{side}" for point in points for side in ("", "+after")]
    names = [list(ran.files) for ran in traced(spec, schedules)]
    assert names == [[], ["control.sock"], ["control.sock"], ["control.sock", "pipe"]]
    assert stat.S_ISSOCK(whole.files["control.sock"][0])
    assert stat.S_ISFIFO(whole.files["pipe"][0])


# Rings.

PAYS = """
import ctypes, os, urllib.request
from chaoskit import Scenario

def main():
    {first}
    if not os.path.exists("done"):
        url = os.environ["CHAOSKIT_PAYMENTS_URL"] + "/v1/charges"
        form = b"amount=100&currency=eur&source=tok_visa&description=c"
        head = {{"Authorization": "Bearer sk_test_x", "Idempotency-Key": "k"}}
        urllib.request.urlopen(urllib.request.Request(url, form, head)).read()
        open("done", "w").close()

scenario = Scenario(task=main, services=("payments",))
"""
RING = "ctypes.CDLL(None).syscall(425, 8, ctypes.create_string_buffer(120))"


def ring_works() -> bool:
    """Whether this kernel gives a ring."""
    (ran,) = traced(python(f"import ctypes; print({RING})"))
    return int(ran.output) >= 0


def judged(folder: Path, first: str) -> tuple[Summary, bool]:
    """A campaign over a sound task that does something ``first``; and whether it was killed at
    random moments.
    """
    target = scenario(folder, PAYS.format(first=first))
    options = Options(target=target, mechanisms=("calls", "windows"), runs=str(folder / "runs"))
    finished = [event for event in run(options) if isinstance(event, Finished)][-1]
    with Store(finished.folder) as store:
        timed = any(parse_schedule(trial.schedule).timed for trial in store.trials())
        return summarize(store), timed


def test_a_program_with_a_ring_gets_it_and_the_report_says_so(tmp_path: Path) -> None:
    """It runs as it does in production, by real kills only, at random moments, too; a program
    without one has copies, and no word of it.
    """
    if not ring_works():
        pytest.skip("this kernel gives no ring")
    with_ring, timed = judged(tmp_path, RING)
    assert (with_ring.verdict, with_ring.copies, timed) == ("VALID", 0, True)
    assert any("io_uring" in text for text in with_ring.not_tested)
    assert any("io_uring" in text for text in with_ring.remarks)
    without, timed = judged(tmp_path, "pass")
    assert (without.verdict, timed) == ("VALID", False)
    assert without.copies > 0
    assert not any("io_uring" in text for text in (*without.not_tested, *without.remarks))


def test_a_ring_that_the_kernel_refuses_is_none() -> None:
    """The program gets the kernel's own answer, and there is nothing to say."""
    assert notes("assert ctypes.CDLL(None).syscall(425, 0, None) == -1") == []


# Programs.


def test_a_call_of_a_child_says_what_program_it_is_of(tmp_path: Path) -> None:
    """A script by its own name, a fork by its parent's, a program by that which it became; the
    points keep their names.
    """
    script = tmp_path / "records"
    script.write_text("#!/bin/sh\necho x > by-script\n", encoding="utf-8")
    script.chmod(0o755)
    (ran,) = traced(
        python(f"""
            import os, subprocess
            open("own", "w")
            subprocess.run([{str(script)!r}], check=True)
            subprocess.run(["touch", "by-touch"], check=True)
            if os.fork() == 0:
                open("by-fork", "w")
                os._exit(0)
            os.wait()
        """)
    )
    assert ran.ends == ["exit 0"], ran.output
    seen = {body.call: body for _, body in ran.history.of(CallSeen)}
    assert seen["open(own)#1"].in_words == "open(own)#1"
    assert seen["p1:open(by-script)#1"].in_words == "p1:open(by-script)#1 of records"
    assert seen["p2:open(by-touch)#1"].program == "touch"
    assert seen["p3:open(by-fork)#1"].program.startswith("python")
