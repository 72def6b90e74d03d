"""The supervisor: trials, surveys, and looks at an attempt from the points that it passes."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from copy import copy
from pathlib import Path
from typing import NamedTuple

from chaoskit.model.events import (
    AttemptEnded,
    FaultLanded,
    RequestReceived,
)
from chaoskit.model.history import History
from chaoskit.model.points import Point
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.probe import where
from chaoskit.probe.where import Location
from chaoskit.trial import process_tree
from chaoskit.trial.attempts import Attempts
from chaoskit.trial.horizon import Horizon, Undisturbed
from chaoskit.trial.in_flight import InFlight, LateRequest
from chaoskit.trial.power import Durable
from chaoskit.trial.recorder import Recorder
from chaoskit.trial.snapshots import Album, Snapshot, Tree, digest_of, scene
from chaoskit.trial.watch import Stops
from chaoskit.trial.world import World

HOLD_S = 0.01
"""How late a service answers in the second survey."""


class Resumed(NamedTuple):
    """An attempt that begins at ``snapshot``, where the last fault of ``schedule`` landed."""

    snapshot: Snapshot
    schedule: Schedule


class Supervisor(Attempts):
    """One scenario's trials; those of `Attempts`, and those that begin at a copy of the world."""

    async def survey(self) -> tuple[History, History]:
        """Two undisturbed runs; the second one in a world that is as different as it may be.

        Its services make other ids, so that a field that only repeats one is seen to vary; and
        they answer a little late, so that requests that are sent together are seen to overlap.
        """
        first = await self.run(Schedule())
        self._begin(seed_shift=1)
        self._stage.delay_replies(HOLD_S)
        try:
            second = await self._go_on(1, Schedule())
        finally:
            self._stage.delay_replies(0.0)
        return first, second

    # Snapshots: one attempt is looked at in many points, and only the resumes are run.

    @property
    def can_snapshot(self) -> bool:
        """Whether every service can go back to a saved world."""
        return self._stage.can_go_back

    @property
    def world(self) -> World:
        """What is copied, and where the copies are."""
        return self._stage.world

    async def record(
        self,
        faults: Iterable[Fault],
        since: Resumed | None = None,
        learn: Undisturbed | None = None,
        horizon: Horizon | None = None,
    ) -> Album:
        """Run one attempt without a fault, and copy the world that each of ``faults`` would leave.

        Args:
            faults: what would be done, and where.
            since: an attempt that begins after a kill; None for the first one of all.
            learn: is told of the world at each request and at the end.
            horizon: how far to follow the attempt; None: to its end.

        Returns:
            The worlds at the points that the attempt passed, as far as there is room.
        """
        wanted: dict[Point, set[Fault]] = {}
        for fault in map(scene, faults):
            wanted.setdefault(fault.point, set()).add(fault)
        cuts = any(fault.is_power for found in wanted.values() for fault in found)
        attempt, before = 1, Schedule()
        if since is None:
            self._begin()
        else:
            attempt, before = self._go_back(since.snapshot, since.schedule), since.schedule
        self._durable = Durable(self._stage.workspace.state) if cuts else None
        album: Album = {}

        def reached(point: Point, late: LateRequest | None) -> None:
            if self.world.contents.full:
                return
            snapshot = self._snapshot(attempt, late)
            disks = self._durable.disks() if self._durable is not None else {}
            for fault in wanted[point]:
                album[fault] = snapshot
                if fault.is_power:
                    album[fault] = self.world.after_power_loss(snapshot, disks[fault.profile])

        def requested() -> None:
            events = self._recorder.history().events
            request = events[-1].body
            if learn is not None and isinstance(request, RequestReceived):
                learn.met(request, len(events) - 1, self.world.save_files())
                self._changed = None

        self._changed, self._mapped = None, set()
        self.world.begin()
        stops = Stops(frozenset(wanted), reached, requested)
        try:
            self._horizon = horizon
            history = await self._go_on(attempt, before, stops)
        finally:
            self._horizon = self._durable = None
        if learn is not None:
            learn.events, learn.end = history.events, self.world.save_files()
        return album

    def _snapshot(self, attempt: int, late: LateRequest | None) -> Snapshot:
        """The world now, which is held still if anything in it could move."""
        at_ns = self.world.now_ns()
        free = self._held is None and not process_tree.is_single(self._stage.launching.pid)
        if free:
            self._stage.launching.freeze()
        watch = self._watch
        assert watch is not None
        changed = None
        if self._changed is not None and self._held is not None and self._held.alone:
            changed = self._changed | self._mapped
        tree, services = self.world.save(changed, watch.moved)
        self._changed = set(self._held.paths) if self._held is not None else None
        if free:
            self._stage.launching.thaw()
        world = digest_of(tree, services)
        events = self._recorder.history().events
        return Snapshot(attempt, tree, services, world, events, copy(self._numbers), late, at_ns)

    async def resume(
        self, snapshot: Snapshot, schedule: Schedule, horizon: Horizon | None = None
    ) -> History:
        """Go on from ``snapshot`` as if the last fault of ``schedule`` had landed there.

        With a ``horizon`` the resume is followed only as far as that says.
        """
        return await self._followed(self._go_back(snapshot, schedule), schedule, horizon)

    def end_state(self) -> Tree:
        """The files as the last trial left them, good until the next one."""
        return self.world.glance()

    def _go_back(self, snapshot: Snapshot, schedule: Schedule) -> int:
        """The world of ``snapshot``, after the kill there; the number of the attempt to come."""
        self._recorder = Recorder(snapshot.events)
        self._numbers = copy(snapshot.numbers)
        self._in_flight = InFlight(self._land)
        self._stage.forget_preludes()
        self.world.put_back(snapshot)
        # the services have it from the copy
        self._stage.circumstances.shift_s = self.resume_after_s * self._recorder.history().kills
        attempt = snapshot.attempt
        for fault in schedule.faults_of(attempt):
            self._recorder.add(FaultLanded(attempt, str(fault)))
            if fault.is_late and snapshot.late is not None:
                self._in_flight.add(snapshot.late, fault.lands_after)
        self._collect(attempt)
        killed = AttemptEnded(attempt=attempt, how="killed", code=int(signal.SIGKILL), seconds=0.0)
        self._recorder.add(killed)
        return attempt + 1

    async def locate(self, points: Iterable[Point]) -> dict[Point, Location]:
        """Run undisturbed once more, and see which line of a Python task's own is at each point.

        Returns:
            The places that were passed and where such a line was running; none for other tasks.
        """
        found: dict[Point, Location] = {}
        folder = str(self._stage.workspace.where)

        def reached(point: Point, late: LateRequest | None) -> None:
            tid = self._held.tid if self._held is not None else self._leader
            location = where.read(folder, tid)
            if location is not None:
                found[point] = location

        self._begin()
        self._locating = True
        try:
            await self._go_on(1, Schedule(), Stops(frozenset(points), reached, lambda: None))
        finally:
            self._locating = False
        return found

    def copy_state(self, folder: Path, bytes_max: int) -> bool:
        """Keep the last trial's work folder in ``folder``. False: larger than ``bytes_max``."""
        return self._stage.workspace.copy_state(folder, bytes_max)
