"""What calls act on, in words: names of files and services, asked of this very process."""

from __future__ import annotations

import ctypes
import mmap
import os
import socket
import struct
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from chaoskit.model.points import CallPoint, parse_point
from chaoskit.trace import OUTSIDE
from chaoskit.trace.abi import ABIS
from chaoskit.trace.naming import Names, Scope, Target, _encoded
from chaoskit.trace.ptrace import Entered

ABI = ABIS["x86_64"]
KINDS = {name: ABI.kinds()[n] for name, n in ABI.numbers.items() if n in ABI.kinds()}
AT_FDCWD, MINUS_ONE = (1 << 64) - 100, (1 << 64) - 1
CREATE = os.O_CREAT | os.O_WRONLY

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/mem").exists(), reason="names are looked up in Linux's /proc"
)


class Asked:
    """Calls that this process could make, named; paths and structures are put into its memory."""

    def __init__(self, work: Path, ports: dict[int, str]) -> None:
        self.work = work
        folders = {str(work / "state"): "", str(work / "services" / "database"): "database:"}
        self.names = Names(Scope(folders, ports, (str(work / "harness"), "/dev/shm/harness")))
        self._kept: list[object] = []

    def __call__(self, call: str, *arguments: int | str | bytes) -> Target | None:
        """The target of one call with its kernel name."""
        words = [self._word(argument) for argument in arguments]
        words += [0] * (6 - len(words))
        return self.names.of(os.getpid(), KINDS[call], Entered(0, tuple(words), 0))

    def name(self, call: str, *arguments: int | str | bytes) -> str | None:
        """Only the name; None where the call does not count."""
        target = self(call, *arguments)
        return None if target is None else target.name

    def _word(self, argument: int | str | bytes) -> int:
        if isinstance(argument, int):
            return argument % (1 << 64)
        raw = os.fsencode(argument) + b"\0" if isinstance(argument, str) else argument
        buffer = ctypes.create_string_buffer(raw, len(raw))
        self._kept.append(buffer)
        return ctypes.addressof(buffer)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """A work folder, in which this process stands, and the service ``shop`` at port 7."""
    work = tmp_path.resolve()
    for folder in ("state/sub", "services/database", "harness", "elsewhere"):
        (work / folder).mkdir(parents=True)
    monkeypatch.chdir(work / "state")
    return Asked(work, {7: "shop"})


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    """What is closed at the end."""
    with ExitStack() as stack:
        yield stack


def descriptor(stack: ExitStack, path: Path, flags: int = os.O_RDONLY) -> int:
    """An open file that is closed at the end."""
    number = os.open(path, flags)
    stack.callback(os.close, number)
    return number


# How a path is written.

RAW = st.binary(min_size=1, max_size=30).filter(lambda raw: b"\0" not in raw)


@given(RAW)
@example(b"100%")
@example(b"%25")
@example(b"a>b")
@example(b"tmp*")
@example("größe.db".encode())
@example(b"line\nbreak (1)")
def test_every_path_fits_into_a_point_and_can_be_read_back(raw: bytes) -> None:
    """Encoded names are points as they are, and no two paths have the same one."""
    name = _encoded(os.fsdecode(raw))
    point = parse_point(f"write({name})#1")
    assert isinstance(point, CallPoint)
    assert point.target == name
    assume("*" not in name)
    assert unquote_to_bytes(name) == raw


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("run.db-wal", "run.db-wal"),
        ("a b.txt", "a%20b.txt"),
        ("tmpabcd1234", "tmp*"),
        ("sub/tmpab_d12_4.json", "sub/tmp*.json"),
        ("tmpabcd1234/part-1", "tmp*/part-1"),
        ("out.tmpabcd1234", "out.tmp*"),
        ("tmpabcd12345", "tmpabcd12345"),
        ("tmp.aB3dE6gH9j", "tmp.*"),
        ("tmp.aB3dE6gH9", "tmp.aB3dE6gH9"),
        ("tmp.aB3dE6gH9jk", "tmp.aB3dE6gH9jk"),
        ("#4303", "*"),
        ("sub/#4303", "sub/*"),
        ("#4303x", "%234303x"),
        ("x#4303", "x%234303"),
        ("tmpABCD1234", "tmpABCD1234"),
        ("my_tmpabcd1234x", "my_tmpabcd1234x"),
        ("footmpabcd1234", "footmpabcd1234"),
        ("1b4e28ba-2fa1-11d2-883f-0016d3cca427.part", "*.part"),
        ("x-1b4e28ba2fa111d2883f0016d3cca427-y", "x-*-y"),
        ("1b4e28ba2fa111d2883f0016d3cca4270", "1b4e28ba2fa111d2883f0016d3cca4270"),
        ("ä/tmpabcd1234", "%C3%A4/tmp*"),
    ],
)
def test_what_is_drawn_anew_in_each_run_is_left_out(path: str, name: str) -> None:
    """Names of temporary files and UUIDs stand as a star, and nothing else does."""
    assert _encoded(path) == name


def test_names_that_libraries_draw_are_recognised(tmp_path: Path) -> None:
    """What tempfile and uuid make now has the same name as what they make next."""
    for _ in range(3):
        handle, path = tempfile.mkstemp(suffix=".json", dir=tmp_path)
        os.close(handle)
        assert _encoded(os.path.basename(path)) == "tmp*.json"
        assert _encoded(os.path.basename(tempfile.mkdtemp(dir=tmp_path))) == "tmp*"
        assert _encoded(f"{uuid.uuid4()}/{uuid.uuid4().hex}") == "*/*"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("out-%Y%m%d-%H%M%S.csv", "out-*.csv"),
        ("out-%Y%m%d%H%M%S.csv", "out-*.csv"),
        ("%Y-%m-%dT%H:%M:%S.123456+00:00.log", "*.log"),
        ("%Y-%m-%d %H-%M.log", "*.log"),
        ("%Y-%m-%d_%H.%M.%SZ/x", "*/x"),
        ("run.{s}.tmp", "run.*.tmp"),
        ("run{s}.123456.tmp", "run*.tmp"),
        ("{s}001-{s}000001-{s}000000001", "*-*-*"),
        ("%Y-%m-%d.csv", "%Y-%m-%d.csv"),
        ("{s}0", "{s}0"),
    ],
)
@pytest.mark.parametrize("hours", [0, -14, 12])
def test_a_time_that_was_read_off_a_clock_is_left_out(written: str, name: str, hours: int) -> None:
    """A time of about now, in any zone and unit, stands as a star; a date alone, or a number that
    is no time, does not.
    """
    now = time.time() + 3600 * hours
    made = [time.strftime(text.format(s=int(now)), time.gmtime(now)) for text in (written, name)]
    assert unquote_to_bytes(_encoded(made[0])).decode() == made[1]


@pytest.mark.parametrize(
    "path",
    ["in-20240131-120000.csv", "2019-05-01T00:00", "1556668800", "20261399-996199", "2" * 12],
)
def test_a_time_long_ago_is_a_name_like_any_other(path: str) -> None:
    """What is no time, or one of another day, belongs to the inputs and tells files apart."""
    assert _encoded(path) == path


def test_a_file_without_a_name_has_the_same_one_in_every_run(
    asked: Asked, opened: ExitStack
) -> None:
    """What O_TMPFILE opens is called by its folder and a star."""
    for folder, name in (("state", "*"), ("state/sub", "sub/*")):
        try:
            file = descriptor(opened, asked.work / folder, os.O_TMPFILE | os.O_WRONLY)
        except OSError:
            pytest.skip("this file system has no files without names")
        assert asked.name("write", file, b"", 1) == name


# Paths.


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a.txt", "a.txt"),
        ("sub/a.txt", "sub/a.txt"),
        ("./sub/../a.txt", "a.txt"),
        ("../state/a.txt", "a.txt"),
        (".", "."),
        ("sub/..", "."),
        ("../services/database/books.db", "database:books.db"),
        ("../services/database", "database:."),
        ("../elsewhere/a.txt", None),
        ("../state-2/a.txt", None),
        ("/etc/passwd", None),
    ],
)
def test_paths_are_relative_to_where_the_task_stands(
    asked: Asked, path: str, name: str | None
) -> None:
    """A file is called by its way from the work folder; what is not below it does not count."""
    assert asked.name("unlink", path) == name
    assert asked.name("openat", AT_FDCWD, path, CREATE) == name
    assert asked.name("truncate", str(asked.work / "state" / path)) == name


def test_a_folder_may_be_given_by_descriptor(asked: Asked, opened: ExitStack) -> None:
    """Relative paths begin there, absolute ones do not, and half a register says minus 100."""
    folder = descriptor(opened, asked.work / "state" / "sub")
    assert asked.name("openat", folder, "a.txt", CREATE) == "sub/a.txt"
    assert asked.name("openat", folder, str(asked.work / "state/b.txt"), CREATE) == "b.txt"
    assert asked.name("unlinkat", 0xFFFFFF9C, "a.txt") == "a.txt"
    assert asked.name("symlinkat", "to", folder, "link") == "sub/link"
    assert asked.name("symlink", "to", "link") == "link"
    assert asked.name("utimensat", folder, 0) == "sub"
    assert asked.name("openat", 4095, "a.txt", CREATE) is None


@pytest.mark.parametrize(
    ("source", "target", "name"),
    [
        ("a.tmp", "a", "a.tmp->a"),
        ("tmpabcd1234", "a b", "tmp*->a%20b"),
        ("../elsewhere/a", "a", f"{OUTSIDE}->a"),
        ("a", "../elsewhere/a", f"a->{OUTSIDE}"),
        ("../services/database/b", "b", "database:b->b"),
        ("../elsewhere/a", "../elsewhere/b", None),
    ],
)
def test_two_paths_make_a_pair(
    asked: Asked, opened: ExitStack, source: str, target: str, name: str | None
) -> None:
    """A renaming counts where one of its ends does, and names both."""
    here = descriptor(opened, asked.work / "state")
    assert asked.name("rename", source, target) == name
    assert asked.name("link", source, target) == name
    assert asked.name("renameat", here, source, here, target) == name
    assert asked.name("renameat2", here, source, AT_FDCWD, target, 1) == name
    assert asked.name("linkat", AT_FDCWD, source, here, target) == name


def test_both_files_of_a_pair_may_have_changed(asked: Asked) -> None:
    """The absolute paths of all files are told, for whoever looks at them afterwards."""
    target = asked("rename", "a.tmp", "sub/a")
    state = asked.work / "state"
    assert target == Target("a.tmp->sub/a", (str(state / "a.tmp"), str(state / "sub/a")))


@pytest.mark.parametrize(
    ("flags", "counts"),
    [(os.O_RDONLY, False), (os.O_WRONLY, False), (CREATE, True), (os.O_RDWR | os.O_TRUNC, True)],
)
def test_flags_behind_a_pointer_are_looked_at(asked: Asked, flags: int, *, counts: bool) -> None:
    """openat2 counts where it creates or truncates, and where its flags cannot be read."""
    how = struct.pack("=QQQ", flags, 0o644, 0)
    expected = "a.txt" if counts else None
    assert asked.name("openat2", AT_FDCWD, "a.txt", how, len(how)) == expected
    assert asked.name("openat2", AT_FDCWD, "a.txt", 0, 24) == "a.txt"


def test_a_path_of_any_length_is_read(asked: Asked) -> None:
    """Up to the system's own limit, wherever in memory it lies, and no further."""
    for length in (1, 200, 255, 256, 257, 2000, 4000):
        name = "/".join(["x" * 9] * (length // 10)) + "y"
        assert asked.name("mkdir", name, 0o700) == name
        shifted = ctypes.create_string_buffer(b"#" * length + os.fsencode(name) + b"\0")
        assert asked.name("mkdir", ctypes.addressof(shifted) + length, 0o700) == name
    assert asked.name("mkdir", "z" * 9000, 0o700) is not None
    assert asked("mkdir", MINUS_ONE - 50, 0o700) is not None  # not mapped: the call fails anyway


# Descriptors.


def test_a_descriptor_is_called_by_its_file(asked: Asked, opened: ExitStack) -> None:
    """Writes know how many bytes they would write, and which file they go to."""
    state = asked.work / "state"
    file = descriptor(opened, state / "a b", CREATE)
    paths = (str(state / "a b"),)
    assert asked("write", file, b"...", 4096) == Target("a%20b", paths, bytes=4096)
    assert asked("pwrite64", file, b"...", 10, 5) == Target("a%20b", paths, bytes=10)
    for call in ("writev", "fsync", "fdatasync", "ftruncate", "fchmod", "fallocate", "sendfile"):
        assert asked(call, file, 0, 5) == Target("a%20b", paths), call
    books = descriptor(opened, asked.work / "services/database/books.db", CREATE)
    assert asked.name("write", books, b"", 1) == "database:books.db"
    assert asked.name("fsync", descriptor(opened, state)) == "."


def test_calls_with_two_descriptors_name_the_one_that_changes(
    asked: Asked, opened: ExitStack
) -> None:
    """Copies count for the file that they are made into."""
    source = descriptor(opened, asked.work / "elsewhere" / "in", os.O_CREAT | os.O_RDWR)
    target = descriptor(opened, asked.work / "state" / "out", CREATE)
    for call in ("copy_file_range", "splice"):
        assert asked.name(call, source, 0, target, 0) == "out"
        assert asked.name(call, target, 0, source, 0) is None
    assert asked.name("sendfile", target, source) == "out"
    assert asked.name("sendfile", source, target) is None


def test_a_deleted_file_keeps_its_name(asked: Asked, opened: ExitStack) -> None:
    """Writes to a file that was removed meanwhile are called as before."""
    path = asked.work / "state" / "gone.txt"
    file = descriptor(opened, path, CREATE)
    path.unlink()
    assert os.readlink(f"/proc/self/fd/{file}").endswith(" (deleted)")
    assert asked.name("write", file, b"", 1) == "gone.txt"


def test_a_writable_mapping_is_called_by_its_file(asked: Asked, opened: ExitStack) -> None:
    """The file stands in the fifth argument; memory without a file does not count."""
    file = descriptor(opened, asked.work / "state" / "m", os.O_CREAT | os.O_RDWR)
    assert asked.name("mmap", 0, 4096, 3, 1, file, 0) == "m"
    assert asked.name("mmap", 0, 4096, 3, 0x21, MINUS_ONE, 0) is None


def test_what_nobody_sees_afterwards_does_not_count(asked: Asked, opened: ExitStack) -> None:
    """Output, pipes, events, anonymous files, terminals, closed descriptors: no points."""
    reading, writing = os.pipe()
    anonymous, event = os.memfd_create("x"), os.eventfd(0)
    main, terminal = os.openpty()
    for number in (reading, writing, anonymous, event, main, terminal):
        opened.callback(os.close, number)
    nothing = descriptor(opened, Path(os.devnull), os.O_WRONLY)
    for number in (writing, anonymous, event, main, terminal, nothing, 4095, MINUS_ONE):
        for call in ("write", "writev", "fsync", "sendto", "ftruncate"):
            assert asked(call, number, b"", 1) is None, (call, number)


def test_files_elsewhere_are_named_and_make_no_points(asked: Asked, opened: ExitStack) -> None:
    """Whoever restores the world must know of them; of a file without a name nobody must."""
    elsewhere = asked.work / "elsewhere"
    file = descriptor(opened, elsewhere / "a", CREATE)
    assert asked("write", file, b"", 1) is None
    assert list(asked.names.elsewhere) == [str(elsewhere / "a")]
    (elsewhere / "a").unlink()
    assert asked("write", file, b"", 1) is None
    assert not list(asked.names.elsewhere)
    assert asked("rename", str(elsewhere / "b"), "/c") is None
    assert list(asked.names.elsewhere) == [str(elsewhere / "b"), "/c"]
    assert asked("unlink", "a") is not None
    assert not list(asked.names.elsewhere)


def test_a_call_that_names_nothing_counts_for_everything(asked: Asked) -> None:
    """sync makes durable whatever was written, and says not what."""
    assert asked("sync") == Target("")


def test_syncing_a_mapping_is_called_by_its_file(asked: Asked, opened: ExitStack) -> None:
    """msync names an address: it counts for the file that is mapped there, if one is."""
    path = asked.work / "state" / "m 1"
    path.write_bytes(bytes(3 * mmap.PAGESIZE))
    file = descriptor(opened, path, os.O_RDWR)
    mapping = opened.enter_context(closing(mmap.mmap(file, 0)))
    view = (ctypes.c_char * len(mapping)).from_buffer(mapping)
    address = ctypes.addressof(view)
    for offset in (0, mmap.PAGESIZE, 2 * mmap.PAGESIZE):
        assert asked("msync", address + offset, 4096, 4) == Target("m%201", (str(path),))
    path.unlink()
    assert asked("msync", address, 4096, 4) == Target("m%201", (str(path),))
    del view
    memory = ctypes.create_string_buffer(1)
    assert asked("msync", ctypes.addressof(memory), 1, 4) is None
    assert asked("msync", 0, 4096, 4) is None


# Services.


def connected(asked: Asked, stack: ExitStack, port: int, family: int = socket.AF_INET) -> int:
    """A socket whose connecting was seen (it need not succeed)."""
    number = stack.enter_context(closing(socket.socket(family))).fileno()
    if family == socket.AF_INET6:
        address = struct.pack("=H", family) + struct.pack("!HI", port, 0) + bytes(16) + bytes(4)
    else:
        address = struct.pack("=H", family) + struct.pack("!H", port) + bytes([127, 0, 0, 1] * 3)
    asked("connect", number, address, len(address))
    return number


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_connection_is_called_by_its_service(
    asked: Asked, opened: ExitStack, family: socket.AddressFamily
) -> None:
    """Connecting and all sending count for the service that listens at the port."""
    address = struct.pack("=H", family) + struct.pack("!H", 7) + bytes(24)
    shop = opened.enter_context(closing(socket.socket(family))).fileno()
    assert asked("connect", shop, address, len(address)) == Target("shop", sends=True)
    assert asked("sendto", shop, b"", 120) == Target("shop", sends=True, bytes=120)
    assert asked("write", shop, b"", 120) == Target("shop", sends=True, bytes=120)
    assert asked("sendmsg", shop, b"") == Target("shop", sends=True)
    assert asked("writev", shop, b"", 2) == Target("shop", sends=True)
    copy = os.dup(shop)
    opened.callback(os.close, copy)
    assert asked.name("sendto", copy, b"", 1) == "shop"


def test_a_port_of_nobody_or_of_another_machine_makes_no_points(
    asked: Asked, opened: ExitStack
) -> None:
    """Only where it is this machine's is the port that of the service."""
    other = connected(asked, opened, 8)
    assert asked("sendto", other, b"", 1) is None
    far = opened.enter_context(closing(socket.socket())).fileno()
    address = struct.pack("=H", socket.AF_INET) + struct.pack("!H", 7) + bytes([192, 0, 2, 1] * 3)
    assert asked("connect", far, address, len(address)) is None
    assert asked("sendto", far, b"", 1) is None


def test_a_socket_in_the_work_folder_is_called_by_its_file(asked: Asked, opened: ExitStack) -> None:
    """Binding it makes a file; binding a port, or an abstract name, makes none."""
    number = opened.enter_context(closing(socket.socket(socket.AF_UNIX))).fileno()
    family = struct.pack("=H", socket.AF_UNIX)
    state = asked.work / "state"
    for path in (b"sub/control.sock", os.fsencode(state / "sub/control.sock") + b"\0"):
        found = asked("bind", number, family + path, 2 + len(path))
        assert found == Target("sub/control.sock", (str(state / "sub/control.sock"),))
    for path in (b"\0abstract", b"", b"/elsewhere.sock"):
        assert asked("bind", number, family + path, 2 + len(path)) is None
    address = struct.pack("=H", socket.AF_INET) + struct.pack("!H", 7) + bytes(12)
    assert asked("bind", number, address, len(address)) is None


def test_a_socket_that_is_connected_elsewhere_forgets_its_service(
    asked: Asked, opened: ExitStack
) -> None:
    """Only the last connection counts."""
    shop = connected(asked, opened, 7)
    assert asked.name("sendto", shop, b"", 1) == "shop"
    address = struct.pack("=H", socket.AF_INET) + struct.pack("!H", 8) + bytes(12)
    assert asked("connect", shop, address, len(address)) is None
    assert asked("sendto", shop, b"", 1) is None


def test_sockets_between_processes_do_not_count(asked: Asked, opened: ExitStack) -> None:
    """Socket pairs, sockets in the file system and ones that were never connected."""
    ours, theirs = socket.socketpair()
    opened.enter_context(closing(ours))
    opened.enter_context(closing(theirs))
    lone = opened.enter_context(closing(socket.socket())).fileno()
    local = opened.enter_context(closing(socket.socket(socket.AF_UNIX))).fileno()
    path = struct.pack("=H", socket.AF_UNIX) + b"/run/some.socket\0"
    assert asked("connect", local, path, len(path)) is None
    assert asked("connect", lone, b"\x02", 1) is None
    assert asked("connect", lone, 0, 16) is None
    for number in (ours.fileno(), lone, local):
        assert asked("sendto", number, b"", 1) is None
