"""The world of one task: saved, put back, and looked at."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from chaoskit.model.hosting import Restorable, Service
from chaoskit.trial.power_disk import Disk, Folder, Symlink
from chaoskit.trial.power_disk import Entry as OnDisk
from chaoskit.trial.snapshots import (
    STATE,
    Camera,
    Contents,
    Entry,
    Snapshot,
    Tree,
    digest_of,
)


class World:
    """Everything durable around one task: some folders, and services that can go back.

    Attributes:
        began_ns: when the trial began that is running, as a time of day.
    """

    def __init__(self, folders: Mapping[str, Path], services: Sequence[Service]) -> None:
        self.contents = Contents()
        self.began_ns = 0
        self._camera = Camera(folders, self.contents)
        self._services = services
        self._saved: dict[str, tuple[int, bytes]] = {}

    def save(self, changed: Iterable[str] | None, moved: int) -> tuple[Tree, tuple[bytes, ...]]:
        """The world as it is now.

        Args:
            changed: see `Camera.take`.
            moved: a number that is another one whenever a service has done something.
        """
        tree = self._camera.take(changed)
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

    def reset(self) -> None:
        """A trial begins in an empty world."""
        self._saved.clear()
        self.began_ns = time.time_ns()

    def _service(self, service: Service, moved: int) -> bytes:
        assert isinstance(service, Restorable)
        known = self._saved.get(service.name)
        if known is None or known[0] != moved:
            known = self._saved[service.name] = moved, self.contents.keep(service.save())
        return known[1]

    def keep_only(self, snapshots: Iterable[Snapshot]) -> None:
        """Forget the contents that none of these needs."""
        needed: set[bytes] = set()
        for snapshot in snapshots:
            needed.update(snapshot.services)
            for entry in snapshot.tree.values():
                needed |= self.contents.of(entry)
        self.contents.keep_only(needed)
        self._saved.clear()

    def put_back(self, snapshot: Snapshot) -> None:
        """Make the world what it was when ``snapshot`` was taken."""
        self._saved.clear()
        self.began_ns = snapshot.began_ns
        self._camera.put_back(snapshot.tree)
        for service, saved in zip(self._services, snapshot.services, strict=True):
            assert isinstance(service, Restorable)
            service.restore(self.contents[saved])
