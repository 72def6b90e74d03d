"""The world of one task: saved, put back, and looked at."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from chaoskit.model.hosting import Clocked, Restorable, Service
from chaoskit.trial import files
from chaoskit.trial.power_disk import Disk, Folder, Symlink
from chaoskit.trial.power_disk import Entry as OnDisk
from chaoskit.trial.snapshots import (
    SERVICES,
    STATE,
    Camera,
    Contents,
    Entry,
    Snapshot,
    Tree,
    digest_of,
)
from chaoskit.trial.view import View
from chaoskit.trial.workspace import Workspace

_REALTIME_COARSE = 5
"""The clock of clock_gettime(2) that shows the time of the last tick; Python does not name it."""


class World:
    """Everything durable around one task: its files, and services that can go back.

    Attributes:
        began_ns: when the trial began that is running, as a time of day.
        ahead_ns: how far the clocks of the task and of the services are ahead of the machine's
            because an older world was put back (it is negative), without what faults have advanced
            them by.
    """

    def __init__(
        self, workspace: Workspace, services: Sequence[Service], view: View | None = None
    ) -> None:
        """The files are the work folder and the services'; with a ``view`` all that is written."""
        self.contents = Contents()
        self.began_ns = 0
        self._workspace = workspace
        self._services = services
        self._view = view
        self._folders = {STATE: workspace.state, SERVICES: workspace.services}
        self._camera = Camera(self._folders, self.contents)
        self._saved: dict[str, tuple[int, bytes]] = {}
        self._look_up()
        self._initial: Tree = {}
        self.ahead_ns = self._since_ns = 0

    def now_ns(self) -> int:
        """The time that goes on from the world that was put back; the machine's if none was."""
        return time.time_ns() + self.ahead_ns

    def _look_up(self) -> None:
        if self._view is not None:
            self._folders.update(self._view.folders)

    def begins_here(self) -> None:
        """The files are now as every trial finds them."""
        tree = self._camera.take()
        below = f"{SERVICES}/"
        self._initial = {n: e for n, e in tree.items() if n != SERVICES and not n.startswith(below)}

    def save(self, changed: Iterable[str] | None, moved: int) -> tuple[Tree, tuple[bytes, ...]]:
        """The world as it is now.

        Args:
            changed: absolute paths, as the task finds them; see `Camera.take`.
            moved: a number that is another one whenever a service has done something.
        """
        ours = None if changed is None else [self._workspace.ours(path) for path in changed]
        tree = self._in_its_time(self._camera.take(ours))
        return tree, tuple(self._service(service, moved) for service in self._services)

    def after_power_loss(self, snapshot: Snapshot, disk: Disk) -> Snapshot:
        """``snapshot`` with what a disk would have kept of the work folder, and all of the rest."""
        below = f"{STATE}/"
        tree = {n: e for n, e in snapshot.tree.items() if not n.startswith(below)}
        for name, entry in disk.items():
            here = f"{STATE}/{name}"
            tree[here] = self._entry(entry, snapshot.tree.get(here))
        world = digest_of(tree, snapshot.services, snapshot.began_ns, snapshot.at_ns)
        return replace(snapshot, tree=tree, world=world)

    def _entry(self, kept: OnDisk, before: Entry | None) -> Entry:
        """What a disk has kept, with the times and attributes that the file had."""
        base = before if before is not None else Entry(0, owner=(os.getuid(), os.getgid()))
        base = replace(base, content=b"", size=0, same_as="", pieces=False)
        if isinstance(kept, Folder):
            return replace(base, mode=stat.S_IFDIR | kept.mode)
        if isinstance(kept, Symlink):
            return replace(base, mode=stat.S_IFLNK | 0o777, content=os.fsencode(kept.target))
        if kept.same_as:
            return Entry(stat.S_IFREG | kept.mode, same_as=f"{STATE}/{kept.same_as}")
        content = self.contents.keep(kept.content)
        return replace(base, mode=stat.S_IFREG | kept.mode, content=content, size=len(kept.content))

    def begin(self) -> None:
        """Another attempt is recorded: what counts moves counts from the start again."""
        self._saved.clear()

    async def reset(self) -> None:
        """A trial begins in a world in which nothing has happened."""
        self._saved.clear()
        self.began_ns = _file_time_ns()
        self.ahead_ns = self._since_ns = 0
        await self._put_files(self._initial, [])

    def _in_its_time(self, tree: Tree) -> Tree:
        """``tree`` with times of its clock: what was written since it was put back has others. A
        time that is still to come was set by the task.
        """
        if not self.ahead_ns:
            return tree
        now_ns = time.time_ns()
        return {
            name: replace(entry, mtime_ns=entry.mtime_ns + self.ahead_ns)
            if self._since_ns <= entry.mtime_ns <= now_ns
            else entry
            for name, entry in tree.items()
        }

    def _service(self, service: Service, moved: int) -> bytes:
        assert isinstance(service, Restorable)
        known = self._saved.get(service.name)
        if known is None or known[0] != moved:
            # how old the copy was from which an attempt went on makes no other world
            self._shift_clock(service, -self._ahead_s)
            known = self._saved[service.name] = moved, self.contents.keep(service.save())
            self._shift_clock(service, self._ahead_s)
        return known[1]

    @property
    def _ahead_s(self) -> float:
        """``ahead_ns`` for services: so many parts of a second can be added and taken off again
        without a rest.
        """
        return round(self.ahead_ns * 1024 / 10**9) / 1024

    def _shift_clock(self, service: Service, seconds: float) -> None:
        if seconds and isinstance(service, Clocked):
            service.shift_clock(seconds)

    def keep_only(self, snapshots: Iterable[Snapshot]) -> None:
        """Forget the contents that none of these needs."""
        trees = [self._initial]
        needed: set[bytes] = set()
        for snapshot in snapshots:
            trees.append(snapshot.tree)
            needed.update(snapshot.services)
        for tree in trees:
            for entry in tree.values():
                needed |= self.contents.of(entry)
        self.contents.keep_only(needed)
        self._saved.clear()

    async def put_back(self, snapshot: Snapshot) -> None:
        """Make the world what it was when ``snapshot`` was taken, and let its time go on."""
        self._saved.clear()
        self.began_ns = snapshot.began_ns
        await self._put_files(snapshot.tree, [SERVICES])
        for service, saved in zip(self._services, snapshot.services, strict=True):
            assert isinstance(service, Restorable)
            service.restore(self.contents[saved])
        self._since_ns = _file_time_ns()
        self.ahead_ns = snapshot.at_ns - time.time_ns()
        for service in self._services:
            self._shift_clock(service, self._ahead_s)

    async def _put_files(self, tree: Tree, further: Sequence[str]) -> None:
        """Make the task's files what they are in ``tree``, and those of ``further`` folders."""
        labels = [STATE, *further]
        if self._view is None:
            self._camera.put_back(tree, labels)
            return
        filled = {name.partition("/")[0] for name in tree if "/" in name}
        layers = self._view.folders
        changed = [n for n in layers if n in filled or self._differs(n, tree.get(n))]
        gone = await self._view.renew(changed)
        self._look_up()
        self._camera.put_back(tree, [*labels, *gone])
        await self._view.cover(gone)

    def _differs(self, label: str, wanted: Entry | None) -> bool:
        """Whether an upper layer is not an empty folder as it was made."""
        folder = self._folders[label]
        status = os.lstat(folder)
        if wanted is None or (status.st_mode, status.st_mtime_ns) != (wanted.mode, wanted.mtime_ns):
            return True
        with files.lent(str(folder), status.st_mode), os.scandir(folder) as entries:
            return next(entries, None) is not None


def _file_time_ns() -> int:
    """The time that a file gets which is written now. Linux gives files the time of its last tick,
    which may be some milliseconds ago: a file that was just written may be older than a look at the
    exact clock before it.
    """
    return time.clock_gettime_ns(_REALTIME_COARSE) if sys.platform == "linux" else time.time_ns()
