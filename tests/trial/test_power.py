"""What a power cut leaves: real file operations, each told to the model as a tracer would."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.actions import PROFILES, Profile
from chaoskit.trial.power import Disk, Durable, Entry, File, Folder, Symlink

Step = tuple[Any, ...]
"""What `Task.do` takes."""

CALLS: dict[str, Callable[..., None]] = {
    do.__name__: do
    for do in (os.chmod, os.link, os.mkdir, os.rename, os.rmdir, os.truncate, os.unlink)
}

Left = dict[Profile, list[dict[str, bytes]]]
"""The files of each disk, call by call."""


class Task:
    """Does one system call after the other in ``root``, and reports each."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.durable = Durable(root)

    def do(self, call: str, *arguments: Any) -> None:
        """Make one of `CALLS` and report it, or do what the method of this name does."""
        if call not in CALLS:
            getattr(self, call)(*arguments)
            return
        CALLS[call](*(self.root / a if isinstance(a, str) else a for a in arguments))
        self.saw(call, *(a for a in arguments if isinstance(a, str)))

    def saw(self, call: str, *names: str, sync_write: bool = False) -> None:
        """Report a call that was made; the model must be able to follow."""
        try:
            paths = tuple(str(self.root / name) for name in names)
            self.durable.saw(call, paths, sync_write=sync_write)
        except OSError as wrong:
            raise AssertionError(f"{call} {names}") from wrong

    @contextmanager
    def opened(self, name: str, flags: int) -> Iterator[int]:
        """A descriptor; opening it is not reported."""
        file = os.open(self.root / name, os.O_RDWR | flags, 0o644)
        try:
            yield file
        finally:
            os.close(file)

    def create(self, name: str, flags: int = os.O_CREAT | os.O_TRUNC) -> None:
        """Open and close."""
        with self.opened(name, flags):
            self.saw("openat", name)

    def write(self, name: str, content: bytes, *, sync_write: bool = False) -> None:
        """Append."""
        with self.opened(name, os.O_APPEND) as file:
            os.write(file, content)
            self.saw("write", name, sync_write=sync_write)

    def put(self, name: str, content: bytes) -> None:
        """Append to a file that is made if it is missing."""
        self.create(name, os.O_CREAT)
        self.write(name, content)

    def fsync(self, name: str = "") -> None:
        """Sync a file or folder that is there."""
        os.stat(self.root / name)
        self.saw("fsync", name)

    def left(self, profile: Profile) -> dict[str, bytes]:
        """The files of one disk; folders and links are left out."""
        disk = self.durable.disks()[profile]
        return {path: entry.content for path, entry in disk.items() if isinstance(entry, File)}


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """A task in a folder with one durable file, ``state``, that says "old"."""
    (tmp_path / "state").write_bytes(b"old")
    (tmp_path / "state").chmod(0o644)
    return Task(tmp_path)


IN_PLACE: list[Step] = [("create", "state"), ("write", "state", b"new")]
IN_PLACE_FSYNC: list[Step] = [*IN_PLACE, ("fsync", "state")]
TMP: list[Step] = [("create", "tmp"), ("write", "tmp", b"new")]
RENAME: list[Step] = [*TMP, ("rename", "tmp", "state")]
FSYNC_RENAME: list[Step] = [*TMP, ("fsync", "tmp"), ("rename", "tmp", "state")]
ALL_SYNCED: list[Step] = [*FSYNC_RENAME, ("fsync", "")]

OLD, NEW, NONE = {"state": b"old"}, {"state": b"new"}, {"state": b""}
EMPTY_TMP, NEW_TMP = {**OLD, "tmp": b""}, {**OLD, "tmp": b"new"}
EMPTIED = [NONE, NONE, NEW]
AT_LAST = [*[OLD] * 4, NEW]
NAMED = [EMPTY_TMP, EMPTY_TMP, NEW_TMP, NEW]


@pytest.mark.parametrize(
    ("strategy", "left"),
    [
        (IN_PLACE, {"drop": [OLD] * 2, "meta": [NONE] * 2, "data": [NONE, NEW]}),
        (IN_PLACE_FSYNC, {"drop": [OLD, OLD, NEW], "meta": EMPTIED, "data": [NONE, NEW, NEW]}),
        (RENAME, {"drop": [OLD] * 3, "meta": [*[EMPTY_TMP] * 2, NONE], "data": [OLD] * 3}),
        (FSYNC_RENAME, {"drop": [OLD] * 4, "meta": NAMED, "data": [OLD] * 4}),
        (ALL_SYNCED, {"drop": AT_LAST, "meta": [*NAMED, NEW], "data": AT_LAST}),
    ],
)
def test_each_way_to_save_a_checkpoint_leaves_what_it_synced(
    task: Task, strategy: list[Step], left: Left
) -> None:
    """After each call of a strategy, each profile leaves exactly these files with these bytes."""
    for number, step in enumerate(strategy):
        task.do(*step)
        assert {p: task.left(p) for p in PROFILES} == {p: left[p][number] for p in PROFILES}


@pytest.mark.parametrize(
    ("strategy", "empty"),
    [(IN_PLACE, 20), (IN_PLACE_FSYNC, 20), (RENAME, 28), (FSYNC_RENAME, 0), (ALL_SYNCED, 0)],
)
def test_only_a_file_that_is_synced_before_its_rename_is_never_found_empty(
    tmp_path: Path, strategy: list[Step], empty: int
) -> None:
    """Ten saves from nothing: an empty checkpoint is met in `meta` only, and so many times.

    Without a sync of the folder no checkpoint outlives a power cut in `drop` and `data`.
    """
    task = Task(tmp_path)
    found = []
    for step in strategy * 10:
        task.do(*step)
        found.append({p: task.left(p).get("state") for p in PROFILES})
    assert [sum(left[p] == b"" for left in found) for p in PROFILES] == [0, empty, 0]
    lasts = strategy is ALL_SYNCED
    assert [found[-1][p] == b"new" for p in ("drop", "data")] == [lasts, lasts]


def test_syncing_a_file_does_not_sync_its_name(task: Task) -> None:
    """A new file that was synced is not there until its folder is synced too."""
    task.put("log", b"1")
    task.fsync("log")
    assert task.left("drop") == task.left("data") == OLD
    assert task.left("meta") == {**OLD, "log": b"1"}
    task.fsync()
    assert task.left("drop") == {**OLD, "log": b"1"}


def test_syncing_a_folder_does_not_sync_the_files_in_it(task: Task) -> None:
    """The name of a file that was never synced is durable, and its bytes are not."""
    task.put("log", b"1")
    task.fsync()
    assert task.left("drop") == task.left("meta") == {**OLD, "log": b""}
    assert task.left("data") == {**OLD, "log": b"1"}


def test_an_unsynced_removal_comes_back(task: Task) -> None:
    """A removed file is back in `drop` and `data`, there with its last bytes, until the sync."""
    task.write("state", b"er")
    task.do("unlink", "state")
    assert task.left("drop") == OLD
    assert task.left("data") == {"state": b"older"}
    assert task.left("meta") == {}
    task.fsync()
    assert task.left("drop") == task.left("data") == {}


def test_a_recycled_inode_brings_nothing_back(task: Task) -> None:
    """A file made after another one was removed has none of its bytes, whatever its number."""
    for name in ("journal", "journal", "other"):
        task.put(name, b"secret")
        task.fsync(name)
        task.fsync()
        assert task.left("drop")[name] == b"secret"
        task.do("unlink", name)
        task.create("next")
        task.fsync()
        assert task.left("drop") == task.left("meta") == {**OLD, "next": b""}
        task.do("unlink", "next")


def test_appending_does_not_lengthen_a_file_and_resizing_does(task: Task) -> None:
    """In `meta` unsynced writes are not there, and a size that was set is, filled with zeros."""
    task.write("state", b" and more")
    assert task.left("meta") == OLD
    task.do("truncate", "state", 2)
    assert task.left("meta") == {"state": b"ol"}
    task.do("truncate", "state", 4)
    assert task.left("meta") == {"state": b"ol\0\0"}
    assert task.left("drop") == OLD
    with task.opened("state", 0) as file:
        os.posix_fallocate(file, 0, 6)
    task.saw("fallocate", "state")
    assert task.left("meta") == {"state": b"ol\0\0\0\0"}
    task.saw("fdatasync", "state")
    assert task.left("drop") == {"state": b"ol\0\0\0\0"}


def test_a_write_through_a_synchronous_descriptor_is_durable(task: Task) -> None:
    """O_SYNC makes writes durable, and neither the opening that truncates nor the name."""
    with task.opened("state", os.O_SYNC | os.O_TRUNC) as file:
        task.saw("openat", "state", sync_write=True)
        assert task.left("drop") == OLD
        os.write(file, b"new")
        task.saw("write", "state", sync_write=True)
    assert task.left("drop") == task.left("meta") == NEW
    task.create("log")
    task.write("log", b"1", sync_write=True)
    assert task.left("drop") == NEW
    assert task.left("meta") == {**NEW, "log": b"1"}


def test_permissions_change_at_once(task: Task) -> None:
    """A file's and a folder's permissions are the same on every disk."""
    task.do("mkdir", "a")
    task.saw("sync")
    task.do("chmod", "state", 0o600)
    task.do("chmod", "a", 0o700)
    for disk in task.durable.disks().values():
        assert disk == {"a": Folder(0o700), "state": File(b"old", 0o600)}


def test_what_promises_nothing_changes_nothing(task: Task) -> None:
    """sync_file_range is no sync, and a call that failed is none at all."""
    task.write("state", b"er")
    task.saw("sync_file_range", "state")
    task.durable.saw("fsync", (str(task.root / "state"),), result=-5)
    assert task.left("drop") == OLD
    task.saw("msync", "state")
    assert task.left("drop") == {"state": b"older"}


def test_each_folder_is_durable_in_its_own_parent(task: Task) -> None:
    """A synced file in a new folder is there once every folder above it was synced."""
    task.do("mkdir", "a")
    task.do("mkdir", "a/b")
    task.put("a/b/file", b"x")
    for name in ("a/b/file", "a/b", "a"):
        task.fsync(name)
        assert task.left("drop") == OLD
    task.fsync()
    assert task.left("drop") == {**OLD, "a/b/file": b"x"}
    assert isinstance(task.durable.disks()["drop"]["a/b"], Folder)


def test_a_removed_folder_comes_back_with_what_was_in_it(task: Task) -> None:
    """Emptying and removing a folder is undone as a whole where its parent was not synced."""
    task.do("mkdir", "a")
    task.put("a/file", b"x")
    task.saw("sync")
    task.do("unlink", "a/file")
    task.do("rmdir", "a")
    assert task.left("meta") == OLD
    assert task.left("drop") == task.left("data") == {**OLD, "a/file": b"x"}


@pytest.mark.parametrize("synced", ["from", "to"])
def test_a_rename_between_folders_is_durable_at_both_ends(task: Task, synced: str) -> None:
    """Syncing either folder moves the file; before, it is where it was, and it is never nowhere."""
    task.do("mkdir", "from")
    task.do("mkdir", "to")
    task.put("from/first", b"x")
    task.saw("sync")
    task.do("rename", "from/first", "from/second")
    task.do("rename", "from/second", "to/third")
    task.put(f"{synced}/more", b"")
    assert task.left("drop") == {**OLD, "from/first": b"x"}
    task.fsync(synced)
    assert task.left("drop") == {**OLD, "to/third": b"x", f"{synced}/more": b""}


@pytest.mark.parametrize(
    ("renames", "synced", "left"),
    [
        ([("a/x", "c/y"), ("c/y", "a/x")], ["a"], {"a/x": b"1", "c/x": b"2"}),
        ([("a/x", "b/x"), ("c/x", "b/x")], ["c", "a"], {"b/x": b"2"}),
        ([("a/d", "d"), ("a", "d/a")], ["d"], {"d/a/x": b"1", "c/x": b"2"}),
    ],
    ids=["there and back", "two to the same name", "a folder into its own"],
)
def test_renames_are_durable_in_an_order_that_makes_sense(
    task: Task, renames: list[tuple[str, str]], synced: list[str], left: dict[str, bytes]
) -> None:
    """With a rename those that it rests on are durable, and an earlier one never undoes it."""
    for name in ("a", "a/d", "b", "c"):
        task.do("mkdir", name)
    task.put("a/x", b"1")
    task.put("c/x", b"2")
    task.saw("sync")
    for old, new in renames:
        task.do("rename", old, new)
    for name in synced:
        task.fsync(name)
    assert task.left("drop") == task.left("data") == {**OLD, **left}


def test_names_that_are_exchanged_are_exchanged_together(task: Task) -> None:
    """After RENAME_EXCHANGE between folders a sync of one of them exchanges both names."""
    task.do("mkdir", "a")
    task.put("a/new", b"new")
    task.saw("sync")
    for old, new in (("a/new", "spare"), ("state", "a/new"), ("spare", "state")):
        os.rename(task.root / old, task.root / new)
    task.saw("renameat2", "a/new", "state")
    assert task.left("drop") == {"state": b"old", "a/new": b"new"}
    task.fsync("a")
    assert task.left("drop") == task.left("meta") == {"state": b"new", "a/new": b"old"}


def test_hard_links_are_one_file(task: Task) -> None:
    """A sync through one name holds for the other, each name is durable by itself, none copies."""
    task.do("link", "state", "alias")
    task.write("alias", b"er")
    task.fsync("state")
    assert task.left("drop") == {"state": b"older"}
    task.fsync()
    assert task.durable.disks()["drop"]["state"] == File(b"older", same_as="alias")
    task.do("rename", "alias", "state")  # both are the same file: nothing happens
    assert task.durable.disks()["meta"]["state"] == File(b"older", same_as="alias")
    task.do("unlink", "alias")
    task.write("state", b"!")
    task.saw("fsync", "alias (deleted)")
    assert task.left("meta") == {"state": b"older!"}


def test_stores_into_a_mapped_file_are_data(task: Task) -> None:
    """What is stored without any call is in `data` at once, and durable after msync."""
    with task.opened("state", 0) as file, mmap.mmap(file, 3) as mapped:
        task.saw("mmap", "state")
        mapped[:] = b"new"
        assert task.left("data") == NEW
        assert task.left("drop") == task.left("meta") == OLD
        task.saw("msync", "state")
        assert task.left("drop") == task.left("meta") == NEW


def test_a_file_that_gets_its_name_last_keeps_its_sync(task: Task) -> None:
    """O_TMPFILE, fsync, linkat: the bytes are durable with the name; without fsync they are not."""
    for name, calls in {"good": ["fsync"], "bad": [], "late": ["fsync", "write"]}.items():
        try:
            file = os.open(task.root, os.O_TMPFILE | os.O_RDWR)
        except OSError:
            pytest.skip("this file system makes no files without names")
        proc = f"/proc/self/fd/{file}"
        for call in ("write", *calls):
            os.write(file, b"x" if call == "write" else b"")
            task.saw(call, os.readlink(proc))
        here = os.open("/", os.O_RDONLY)  # without one Python does not ask to follow
        os.link(proc, task.root / name, src_dir_fd=here, follow_symlinks=True)
        task.durable.saw("linkat", (proc, str(task.root / name)))
        os.close(here)
        os.close(file)
    task.fsync()
    assert task.left("drop") == {**OLD, "good": b"x", "bad": b"", "late": b""}


def test_what_comes_from_outside_counts_as_unsynced(
    task: Task, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A file renamed into the folder is a new one, durable only if its sync was seen."""
    outside = tmp_path_factory.mktemp("outside")
    for name in ("synced", "unsynced"):
        (outside / name).write_bytes(b"x")
    task.durable.saw("fsync", (str(outside / "synced"),))
    for name in ("synced", "unsynced"):
        os.rename(outside / name, task.root / name)
        task.durable.saw("rename", (str(outside / name), str(task.root / name)))
    assert task.left("meta") == {**OLD, "synced": b"x", "unsynced": b""}


def test_a_path_may_lead_through_links(task: Task) -> None:
    """Writing through symbolic links and dots changes the file that they lead to."""
    task.do("mkdir", "real")
    task.put("real/file", b"")
    for name, target in (("folder", "real"), ("link", "folder/file")):
        os.symlink(target, task.root / name)
        task.saw("symlinkat", name)
    task.saw("sync")
    task.write("link", b"1")
    task.write("folder/../folder/file", b"2")
    assert task.left("data") == {**OLD, "real/file": b"12"}
    task.fsync("folder/file")
    assert task.left("drop") == {**OLD, "real/file": b"12"}
    assert task.durable.disks()["drop"]["link"] == Symlink("folder/file")


NAMES = st.sampled_from(["a", "b", "c", "a-b", "\udcff"])
FILES = st.builds(File, st.binary(max_size=20), st.sampled_from([0o600, 0o444, 0o755]))
FOLDERS = st.builds(Folder, st.sampled_from([0o755, 0o555, 0o700]))
LINKS = st.builds(Symlink, st.sampled_from(["a", "../b", "nowhere"]))


@st.composite
def disks(draw: st.DrawFn) -> Disk:
    """A tree of up to three levels, with hard links."""
    entries: dict[str, Entry] = {}
    for parts in draw(st.lists(st.lists(NAMES, min_size=1, max_size=3), max_size=8)):
        *above, path = ("/".join(parts[: n + 1]) for n in range(len(parts)))
        if all(isinstance(entries.get(folder, Folder()), Folder) for folder in above):
            for folder in above:
                entries.setdefault(folder, draw(FOLDERS))
            entries.setdefault(path, draw(FILES | FOLDERS | LINKS))
    files = sorted(path for path, entry in entries.items() if isinstance(entry, File))
    if len(files) > 1 and draw(st.booleans()):
        first = entries[files[0]]
        assert isinstance(first, File)
        entries[files[1]] = File(first.content, first.mode, same_as=files[0])
    return Disk(entries)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all examples, so that each finds what the one before has left."""
    return tmp_path_factory.mktemp("disk") / "made"


@given(disk=disks(), other=disks())
def test_a_disk_is_written_exactly_and_known_by_its_digest(
    folder: Path, disk: Disk, other: Disk
) -> None:
    """Reading what was written gives an equal disk; only equal ones have the same digest."""
    for wanted in (other, disk):
        wanted.write_to(folder)
        assert Disk.read(folder) == wanted
        assert Disk.read(folder).digest() == wanted.digest()
    assert (disk.digest() == other.digest()) == (disk == other) == (len({disk, other}) == 1)
    assert Durable(folder).disks() == dict.fromkeys(PROFILES, disk)


SPOTS = st.sampled_from([f"{above}{name}" for above in ("", "a/", "a/b/", "c/") for name in "abcd"])
STEPS = st.one_of(
    st.tuples(st.just("put"), SPOTS, st.binary(max_size=3)),
    st.tuples(st.just("truncate"), SPOTS, st.integers(0, 4)),
    st.tuples(st.sampled_from(["rename", "link"]), SPOTS, SPOTS),
    st.tuples(st.sampled_from(["unlink", "mkdir", "rmdir"]), SPOTS),
    st.tuples(st.just("fsync"), SPOTS | st.just("")),
    st.just(("saw", "sync")),
)


@given(steps=st.lists(STEPS, max_size=30))
def test_whatever_a_task_does_a_full_sync_makes_every_disk_the_real_folder(
    folder: Path, steps: list[Step]
) -> None:
    """After sync(), and after an fsync of each file and folder, every disk equals the folder.

    Between them `meta` has the names of now, and an fsync of a file makes its bytes those of now.
    """
    Disk({"a": Folder(), "a/b": Folder(), "c": Folder(), "d": File(b"d")}).write_to(folder)
    task = Task(folder)
    for step in steps:
        with suppress(OSError):  # the kernel refuses it, so it is not reported
            task.do(*step)
        real = Disk.read(folder)
        assert list(task.durable.disks()["meta"]) == list(real)
        if step[0] == "saw":
            assert task.durable.disks() == dict.fromkeys(PROFILES, real)
        elif step[0] == "fsync" and isinstance(entry := real.get(step[1]), File):
            assert task.left("meta")[step[1]] == entry.content
    for name in ["", *Disk.read(folder)]:
        task.fsync(name)
    assert task.durable.disks() == dict.fromkeys(PROFILES, Disk.read(folder))


MOVES = st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 9))


@given(steps=st.lists(MOVES, max_size=25))
def test_what_is_only_moved_is_never_lost_and_never_doubled(
    folder: Path, steps: list[tuple[int, int, int]]
) -> None:
    """Durable files and folders that are renamed and synced at random are in every disk once."""
    entries: dict[str, Entry] = {name: Folder() for name in "abc"}
    entries |= {f"{name}/id-{name}": File(name.encode()) for name in "abc"}
    Disk(entries).write_to(folder)
    task = Task(folder)
    for number, (what, where, sync) in enumerate(steps):
        paths = sorted(Disk.read(folder))
        folders = ["", *(p for p in paths if (folder / p).is_dir())]
        old, new = paths[what], f"{folders[where]}/moved-{number}".lstrip("/")
        if not f"{new}/".startswith(f"{old}/"):
            task.do("rename", old, new)
        if sync < len(folders):
            task.fsync(sorted(p for p in ["", *Disk.read(folder)] if (folder / p).is_dir())[sync])
        for profile, disk in task.durable.disks().items():
            assert sorted(task.left(profile).values()) == [b"a", b"b", b"c"]
            assert sum(isinstance(entry, Folder) for entry in disk.values()) == 3
