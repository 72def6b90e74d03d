"""The world of one task: saved, put back, and looked at."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from chaoskit.model.hosting import Clocked, Restorable, Service
from chaoskit.trial.logical import Reader
from chaoskit.trial.power_disk import Disk, Folder, Symlink
from chaoskit.trial.power_disk import Entry as OnDisk
from chaoskit.trial.snapshots import Camera, Contents, Entry, Snapshot, Tree, digest_of

STATE, SERVICES = "state", "services"
"""How the folders are called in a `Tree`."""


class World:
    """Everything durable around one task: some folders, and services that can go back.

    Databases are read in copies, in the folder ``reading``. ``ahead_ns``: how far the clocks of
    the task and of the services are ahead of the machine's because an older world was put back (it
    is negative), without what faults have advanced them by.
    """

    def __init__(
        self, folders: Mapping[str, Path], services: Sequence[Service], reading: Path
    ) -> None:
        self.contents = Contents()
        self._camera = Camera(folders, self.contents)
        self._glances = Contents(beside=self.contents)
        self._glancing = Camera(folders, self._glances)
        self.reader = Reader(self._glances, reading)
        self._services = services
        self._saved: dict[str, tuple[int, bytes]] = {}
        self.ahead_ns = self._since_ns = 0

    def now_ns(self) -> int:
        """The time that goes on from the world that was put back; the machine's if none was."""
        return time.time_ns() + self.ahead_ns

    def save(self, changed: Iterable[str] | None, moved: int) -> tuple[Tree, tuple[bytes, ...]]:
        """The world as it is now.

        Args:
            changed: see `Camera.take`.
            moved: a number that is another one whenever a service has done something.
        """
        tree = self._in_its_time(self._camera.take(changed))
        return tree, tuple(self._service(service, moved) for service in self._services)

    def after_power_loss(self, snapshot: Snapshot, disk: Disk) -> Snapshot:
        """``snapshot`` with what a disk would have kept of the work folder, and all of the rest."""
        kept = {n: e for n, e in snapshot.tree.items() if not n.startswith(f"{STATE}/")}
        tree = {f"{STATE}/{name}": self._entry(entry) for name, entry in disk.items()} | kept
        world = digest_of(tree, snapshot.services)
        return replace(snapshot, tree=tree, world=world)

    def _entry(self, kept: OnDisk) -> Entry:
        if isinstance(kept, Folder):
            return Entry(stat.S_IFDIR | kept.mode)
        if isinstance(kept, Symlink):
            return Entry(stat.S_IFLNK | 0o777, os.fsencode(kept.target))
        return Entry(stat.S_IFREG | kept.mode, self.contents.keep(kept.content))

    def begin(self) -> None:
        """Another attempt is recorded: what counts moves counts from the start again."""
        self._saved.clear()

    def save_files(self) -> Tree:
        """The files as they are now, to be kept."""
        return self._camera.take()

    def glance(self) -> Tree:
        """The files as they are now, until the next `put_back`."""
        return self._glancing.take()

    def _in_its_time(self, tree: Tree) -> Tree:
        """``tree`` with times of its clock: what was written since it was put back has others."""
        if not self.ahead_ns:
            return tree
        return {
            name: replace(entry, mtime_ns=entry.mtime_ns + self.ahead_ns)
            if entry.mtime_ns >= self._since_ns
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

    def forget_times(self) -> None:
        """An empty world begins: its time is the machine's."""
        self.ahead_ns = self._since_ns = 0

    def keep_only(self, snapshots: Iterable[Snapshot], trees: Iterable[Tree]) -> None:
        """Forget the contents that none of these needs."""
        needed = {entry.content for tree in trees for entry in tree.values()}
        for snapshot in snapshots:
            needed.update(snapshot.services)
            needed.update(entry.content for entry in snapshot.tree.values())
        self.contents.keep_only(needed)
        self._saved.clear()

    def put_back(self, snapshot: Snapshot) -> None:
        """Make the world what it was when ``snapshot`` was taken, and let its time go on."""
        self._saved.clear()
        self._glances.keep_only(set())
        self._camera.put_back(snapshot.tree)
        for service, saved in zip(self._services, snapshot.services, strict=True):
            assert isinstance(service, Restorable)
            service.restore(self.contents[saved])
        self._since_ns = time.time_ns()
        self.ahead_ns = snapshot.at_ns - self._since_ns
        for service in self._services:
            self._shift_clock(service, self._ahead_s)
