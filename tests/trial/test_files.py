"""Files with all that a kill leaves of them, read and written back."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoskit.trial import files
from chaoskit.trial.snapshots import Camera, Contents, digest_of
from tests.ordinary import as_an_ordinary_user

PAGE = 4096
NAMES = ("a", "b", "c", "d", "d/a", "d/b", "e")
KINDS = ("file", "sparse", "folder", "link", "hard", "fifo", "socket", "gone")


def looks(path: Path) -> tuple[Any, ...]:
    """What a program can find out about a file, but for what the kernel draws anew."""
    status = path.lstat()
    content: object = None
    if stat.S_ISREG(status.st_mode):
        content = path.read_bytes(), holes(path)
    elif stat.S_ISLNK(status.st_mode):
        content = path.readlink()
    shown = (status.st_mode, status.st_uid, status.st_gid, status.st_nlink, status.st_mtime_ns)
    size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
    return shown, size, content, files.attributes(str(path), path.lstat().st_mode)


def holes(path: Path) -> list[int]:
    """Where the data of a file begin and end."""
    found, at = [], 0
    with path.open("rb") as file:
        while True:
            try:
                found.append(os.lseek(file.fileno(), at, os.SEEK_DATA))
            except OSError:  # ENXIO: there are no more
                return found
            at = os.lseek(file.fileno(), found[-1], os.SEEK_HOLE)
            found.append(at)


def all_below(folder: Path) -> dict[str, tuple[Any, ...]]:
    """Every file, and the folder itself."""
    return {str(p.relative_to(folder)): looks(p) for p in [folder, *sorted(folder.rglob("*"))]}


def make(folder: Path, name: str, kind: str, number: int) -> None:
    """Put something in place of what is there; where that cannot be, nothing."""
    path = folder / name
    try:
        files.remove(str(path))
        MAKERS[kind](path, number)
        if kind not in {"gone", "link"}:
            os.setxattr(path, "user.note", str(number).encode(), follow_symlinks=False)
    except OSError:
        return


def sparse(path: Path, number: int) -> None:
    """A file with data in the middle of nothing."""
    with path.open("wb") as file:
        file.truncate(64 * PAGE)
        os.pwrite(file.fileno(), b"x" * number, (number % 7) * 8 * PAGE)


def bound(path: Path, number: int) -> None:
    """A socket as its server leaves it when it is killed."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))


MAKERS: dict[str, Callable[[Path, int], object]] = {
    "file": lambda path, number: path.write_bytes(b"%d" % number * number),
    "sparse": sparse,
    "folder": lambda path, number: path.mkdir(0o700 | number % 0o70),
    "link": lambda path, number: path.symlink_to(f"nowhere-{number}"),
    "hard": lambda path, number: os.link(path.with_name("a"), path),
    "fifo": lambda path, number: os.mkfifo(path, 0o600),
    "socket": bound,
    "gone": lambda path, number: None,
}

DEEDS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(KINDS), st.integers(1, 300)), max_size=8
)


@settings(max_examples=150)
@given(before=DEEDS, after=DEEDS, mtime=st.integers(0, 2**62))
def test_a_world_comes_back_with_all_that_a_kill_leaves(
    before: list[tuple[str, str, int]], after: list[tuple[str, str, int]], mtime: int
) -> None:
    """Types, modes, contents, holes, links, attributes and times, whatever is there instead."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve() / "state"
        folder.mkdir()
        for name, kind, number in before:
            make(folder, name, kind, number)
        os.utime(folder, ns=(mtime, mtime))
        camera = Camera({"state": folder}, Contents())
        tree, seen = camera.take(), all_below(folder)
        for name, kind, number in after:
            make(folder, name, kind, number)
        camera.put_back(tree, ["state"])
        assert all_below(folder) == seen
        assert camera.take() == tree
        assert digest_of(camera.take(), ()) == digest_of(tree, ())


def test_a_folder_that_was_removed_is_removed_again(tmp_path: Path) -> None:
    """The work folder itself may be gone at a point."""
    state = tmp_path / "state"
    camera = Camera({"state": state}, Contents())
    tree = camera.take()
    assert tree == {}
    state.mkdir()
    (state / "file").write_bytes(b"x")
    camera.put_back(tree, ["state"])
    assert not state.exists()


def test_a_file_of_a_terabyte_costs_its_blocks(tmp_path: Path) -> None:
    """What was never written is neither read nor kept."""
    state = tmp_path / "state"
    state.mkdir()
    contents = Contents(bytes_max=1 << 20)
    with (state / "store").open("wb") as file:
        file.truncate(1 << 40)
        os.pwrite(file.fileno(), b"done", 1 << 39)
    camera = Camera({"state": state}, contents)
    tree = camera.take()
    assert not contents.full
    (state / "store").unlink()
    camera.put_back(tree, ["state"])
    status = (state / "store").stat()
    assert (status.st_size, status.st_blocks * 512 <= 16 * PAGE) == (1 << 40, True)
    with (state / "store").open("rb") as file:
        assert os.pread(file.fileno(), 4, 1 << 39) == b"done"


@pytest.mark.parametrize("change", ["utime", "chmod", "setxattr", "link", "hole"])
def test_worlds_that_a_task_can_tell_apart_are_not_equal(tmp_path: Path, change: str) -> None:
    """Each of these is a system call at which a task is killed, before it and after it."""
    state = tmp_path / "state"
    state.mkdir()
    (state / "file").write_bytes(bytes(2 * PAGE))
    camera = Camera({"state": state}, Contents())
    one = digest_of(camera.take(), ())
    match change:
        case "utime":
            os.utime(state / "file", (1, 1))
        case "chmod":
            (state / "file").chmod(0o600)
        case "setxattr":
            os.setxattr(state / "file", "user.done", b"1")
        case "link":
            os.link(state / "file", state / "other")
            (state / "file").unlink()
            (state / "other").rename(state / "file")
            os.link(state / "file", state / "other")
        case "hole":
            (state / "file").unlink()
            with (state / "file").open("wb") as file:
                file.truncate(2 * PAGE)
    assert digest_of(camera.take(), ()) != one


def test_a_newer_file_is_told_from_an_older_one(tmp_path: Path) -> None:
    """As make does: which of two is newer decides what is done, whatever the times are."""
    state = tmp_path / "state"
    state.mkdir()
    now = 10**18

    def world(source: int, stamp: int) -> bytes:
        for name, time in (("source", source), ("stamp", stamp)):
            (state / name).write_bytes(b"")
            os.utime(state / name, ns=(now + time, now + time))
        os.utime(state, ns=(now, now))
        tree = Camera({"state": state}, Contents()).take()
        return digest_of(tree, (), now, now + 10**9)

    assert world(1, 2) == world(5, 9)
    assert world(2, 1) != world(1, 2)
    assert world(1, 1) not in {world(1, 2), world(2, 1)}


def test_how_old_a_file_is_tells_worlds_apart(tmp_path: Path) -> None:
    """As a lock's age does, whether or not it is the newest file; milliseconds do not."""
    state = tmp_path / "state"
    state.mkdir()
    began = 10**18

    def world(now_s: float) -> bytes:
        now = began + int(now_s * 10**9)
        for name, time in (("lock", began), ("new", now)):
            (state / name).write_bytes(b"")
            os.utime(state / name, ns=(time, time))
        os.utime(state, ns=(now, now))
        return digest_of(Camera({"state": state}, Contents()).take(), (), began, now)

    assert world(0.001) == world(0.2)
    assert world(1) != world(40)


@pytest.mark.parametrize("mode", [0o000, 0o555])
def test_what_its_owner_may_not_read_or_write_is_kept_too(mode: int) -> None:
    """Without the powers of root: the owner lends himself the right, and takes it back."""

    def deed(folder: Path) -> None:
        state = folder / "state"
        (state / "in").mkdir(parents=True)
        (state / "in/file").write_bytes(b"x")
        os.setxattr(state / "in/file", "user.done", b"1")
        os.setxattr(state / "in", "user.done", b"2")
        (state / "in/file").chmod(mode)
        (state / "in").chmod(mode)
        camera = Camera({"state": state}, Contents())
        tree = camera.take()
        assert stat.S_IMODE(tree["state/in"].mode) == mode
        marks = [dict(tree[name].extras)["user.done"] for name in ("state/in/file", "state/in")]
        assert marks == [b"1", b"2"]
        camera.put_back(tree, ["state"])
        assert camera.take() == tree
        (state / "in").chmod(0o700)
        (state / "in/file").chmod(0o600)
        for name in ("in/file", "in"):
            os.setxattr(state / name, "user.done", b"3")
        (state / "in/file").chmod(mode)
        (state / "in").chmod(mode)
        camera.put_back(tree, ["state"])
        assert camera.take() == tree
        camera.put_back({}, ["state"])
        assert not state.exists()

    as_an_ordinary_user(deed)
