"""Looks at one attempt: copies of the world at its points, or the lines of code that run there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chaoskit.model.actions import PowerLoss
from chaoskit.model.points import Point
from chaoskit.model.schedule import Fault
from chaoskit.probe import where
from chaoskit.probe.where import Location
from chaoskit.trial import process_tree
from chaoskit.trial.in_flight import LateRequest
from chaoskit.trial.snapshots import Album, Snapshot, digest_of, scene
from chaoskit.trial.state import TrialState
from chaoskit.trial.watch import Watch
from chaoskit.trial.world import World


class Recording:
    """Copies the world that each of some faults would leave.

    Attributes:
        points: where the attempt waits for that.
        album: the copies so far, as far as there is room.
    """

    def __init__(self, state: TrialState, world: World, faults: Iterable[Fault]) -> None:
        self.album: Album = {}
        self._state = state
        self._world = world
        self._wanted: dict[Point, set[Fault]] = {}
        for fault in map(scene, faults):
            self._wanted.setdefault(fault.point, set()).add(fault)
        self.points = frozenset(self._wanted)
        self._changed: set[str] | None = None
        self._mapped: set[str] = set()
        world.begin()

    def changed(self, paths: Sequence[str]) -> None:
        """See `Looker`."""
        if self._changed is not None:
            self._changed.update(paths)

    def mapped(self, paths: Sequence[str]) -> None:
        """See `Looker`."""
        self._mapped.update(paths)

    def reached(self, point: Point, watch: Watch, late: LateRequest | None) -> None:
        """Copy the world, unless a kill here would find the task's first process gone: how that one
        ended is no part of a copy.
        """
        launching = self._state.stage.launching
        if self._world.contents.full or not launching.leader_lives:
            return
        snapshot = self._snapshot(watch, late)
        durable = self._state.durable
        disks = durable.disks() if durable is not None else {}
        for fault in self._wanted[point]:
            self.album[fault] = snapshot
            if isinstance(fault.action, PowerLoss):
                disk = disks[fault.action.profile]
                self.album[fault] = self._world.after_power_loss(snapshot, disk)

    def _snapshot(self, watch: Watch, late: LateRequest | None) -> Snapshot:
        """The world now, which is held still if anything in it could move."""
        at_ns, began_ns = self._world.now_ns(), self._world.began_ns
        launching, held = self._state.stage.launching, watch.held
        free = held is None and not process_tree.is_single(launching.pid)
        if free:
            launching.freeze()
        changed = None
        if self._changed is not None and held is not None and held.alone:
            changed = self._changed | self._mapped
        tree, services = self._world.save(changed, watch.moved)
        self._changed = set(held.paths) if held is not None else None
        if free:
            launching.thaw()
        return Snapshot(
            attempt=watch.attempt,
            tree=tree,
            services=services,
            world=digest_of(tree, services, began_ns, at_ns),
            log=self._state.recorder.position,
            number=self._state.number,
            late=late,
            began_ns=began_ns,
            at_ns=at_ns,
        )


class Locating:
    """Sees which line of a Python task's own code is running at each of some points.

    Attributes:
        found: the places that were passed and where such a line was running: that line, and those
            of the task's own code that called it, the innermost one first.
    """

    def __init__(self, state: TrialState, points: Iterable[Point]) -> None:
        self.points = frozenset(points)
        self.found: dict[Point, tuple[Location, ...]] = {}
        self._stage = state.stage

    def changed(self, paths: Sequence[str]) -> None:
        """Nothing is copied."""

    def mapped(self, paths: Sequence[str]) -> None:
        """Nothing is copied."""

    def reached(self, point: Point, watch: Watch, late: LateRequest | None) -> None:
        """See `Looker`."""
        tid = watch.held.tid if watch.held is not None else self._stage.launching.leader
        stack = where.stack(str(self._stage.workspace.where), tid)
        if stack:
            self.found[point] = stack
