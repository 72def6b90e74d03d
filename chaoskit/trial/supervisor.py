"""The supervisor: hosts the services, runs trials one after the other, owns the order of events."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path
from typing import Self

from chaoskit.model.behaviours import parse_behaviour
from chaoskit.model.contract import Contract
from chaoskit.model.effects import Effect
from chaoskit.model.errors import HarnessError, UsageError, unknown_name
from chaoskit.model.events import (
    AttemptEnded,
    AttemptStarted,
    EffectApplied,
    Event,
    FaultLanded,
    How,
    StateObserved,
)
from chaoskit.model.history import History
from chaoskit.model.hosting import (
    Address,
    Patient,
    RequestInfo,
    Restorable,
    Service,
    ServiceSettings,
)
from chaoskit.model.points import Point
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.model.secrets import without_secrets
from chaoskit.trial import process_tree
from chaoskit.trial.addresses import Addresses, addresses
from chaoskit.trial.launching import Launching
from chaoskit.trial.loading import Loaded
from chaoskit.trial.output import Output
from chaoskit.trial.recorder import Recorder
from chaoskit.trial.reports import Message, Reports
from chaoskit.trial.services import create_services, service_names
from chaoskit.trial.watch import Stops, Watch
from chaoskit.trial.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The durable world at one point of an attempt: files in ``folder``, the services' worlds, and
    what had been seen until then.
    """

    attempt: int
    folder: Path
    worlds: tuple[bytes, ...]
    events: tuple[Event, ...]
    numbers: count[int]


GRACE_S = 0.5
"""How long a child may outlive the task before it is called a leftover."""

HOLD_S = 0.01
HOLD_TOTAL_S = 3.0
"""How late a service answers in the second survey, and in all at the most."""

QUIESCE_TIMEOUT_S = 5.0
FIRST_TIMEOUT_S = 300.0
_TAIL_CHARACTERS = 4000


class Supervisor:
    """One scenario, ready to be run again and again. Use as an asynchronous context manager."""

    def __init__(self, loaded: Loaded, seed: int, work_root: Path | None = None) -> None:
        self._loaded = loaded
        self._scenario = loaded.scenario
        self._seed = seed
        self._behaviours = tuple(map(parse_behaviour, loaded.scenario.behaviours))
        self._services: list[Service] = create_services(loaded.scenario.services)
        self._check_behaviours()
        self._check_patterns()
        self._work_root = work_root
        self._watch: Watch | None = None
        self._recorder = Recorder()
        self.own_timeout_s = loaded.scenario.timeout_s
        self.timeout_s = self.own_timeout_s or FIRST_TIMEOUT_S

    def _check_behaviours(self) -> None:
        for behaviour in self._behaviours:
            if behaviour.service not in self._scenario.services:
                raise unknown_name("service", behaviour.service, self._scenario.services)

    def _check_patterns(self) -> None:
        """Every pattern of the scenario must match something that its services can do.

        A database's operations come with its tables; of it only the name is looked at.
        """
        Contract.of(self._scenario.contract)
        known = [f"{s.name}.{operation}" for s in self._services for operation in s.operations]
        loose = tuple(f"{s.name}." for s in self._services if not s.operations)
        for pattern in (*self._scenario.contract, *self._scenario.identity):
            if pattern.startswith(loose) or any(fnmatchcase(name, pattern) for name in known):
                continue
            if loose and any(mark in pattern for mark in "*?["):
                continue
            raise unknown_name("operation", pattern, known or [f"{name}*" for name in loose])

    async def __aenter__(self) -> Self:
        if not hasattr(os, "fork"):
            raise UsageError(
                f"tasks cannot be started and killed on {sys.platform}: run chaoskit on Linux, on "
                "macOS, or under WSL"
            )
        self._workspace = Workspace(self._work_root)
        try:
            self._launching = Launching(self._workspace.base)
            self._reports = Reports(self._workspace.socket, self._heard)
            await self._set_up()
        except BaseException:
            await self._tear_down()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tear_down()

    async def _set_up(self) -> None:
        scenario = self._scenario
        workspace = self._workspace
        if scenario.inputs is not None:
            workspace.write_inputs(scenario.inputs(self._seed))
        fill = scenario.prepare
        workspace.prepare(None if fill is None else lambda folder: fill(folder, self._seed))
        known: dict[str, Address] = {}
        for service in self._services:
            options = {"tables": scenario.tables} if scenario.tables else {}
            folder = workspace.services / service.name
            folder.mkdir()
            known[service.name] = await service.start(self, ServiceSettings(folder, 0, options))
        self._addresses = self._join(known)
        for word in (*scenario.command, *scenario.resume, *scenario.env.values()):
            self._addresses.fill(word)
        if scenario.task is not None:
            if self._loaded.file is None:
                raise HarnessError("a Python task needs the file that it stands in")
            await self._launching.load(self._loaded.file, self._loaded.name)

    def _join(self, known: Mapping[str, Address]) -> Addresses:
        own = {
            "state": str(self._workspace.state),
            "seed": str(self._seed),
            "inputs": str(self._workspace.inputs),
            "here": str(self._loaded.here),
        }
        variables = {
            "CHAOSKIT_STATE_DIR": own["state"],
            "CHAOSKIT_SEED": own["seed"],
            "CHAOSKIT_INPUTS": own["inputs"],
        }
        return addresses(known, own, variables, service_names())

    async def _tear_down(self) -> None:
        for service in self._services:
            await service.stop()
        if hasattr(self, "_reports"):
            self._reports.close()
        if hasattr(self, "_launching"):
            self._launching.close()
        self._workspace.remove()

    # One trial.

    async def run(self, schedule: Schedule) -> History:
        """Run ``schedule`` to its end: attempts until the task ends by itself or a bound is met."""
        self._begin()
        return await self._go_on(1, schedule)

    async def survey(self) -> tuple[History, History]:
        """Two undisturbed runs; the second one in a world that is as different as it may be.

        Its services make other ids, so that a field that only repeats one is seen to vary; and
        they answer a little late, so that requests that are sent together are seen to overlap.
        """
        first = await self.run(Schedule())
        self._begin(seed_shift=1)
        self._delay_replies(HOLD_S)
        try:
            second = await self._go_on(1, Schedule())
        finally:
            self._delay_replies(0.0)
        return first, second

    def _delay_replies(self, seconds: float) -> None:
        for service in self._services:
            if isinstance(service, Patient):
                service.delay_replies(seconds, HOLD_TOTAL_S)

    def _begin(self, seed_shift: int = 0) -> None:
        """An empty world."""
        self._recorder = Recorder()
        self._numbers = count(1)
        self._workspace.refill()
        for service in self._services:
            service.reset(self._seed + seed_shift, self._behaviours)

    async def _go_on(self, attempt: int, schedule: Schedule, stops: Stops | None = None) -> History:
        """Attempts from ``attempt`` on; the first one without a fault may have ``stops``."""
        failures = 0
        while True:
            faults = schedule.faults_of(attempt)
            watched = stops if attempt == len(schedule.attempts) + 1 else None
            ended = await self._attempt(attempt, faults, watched)
            attempt += 1
            if ended.how == "killed":
                continue
            if self._is_final(ended):
                break
            failures += 1
            if failures >= self._scenario.attempts_max:
                break
        if self._scenario.outputs:
            self._recorder.add(StateObserved(self._workspace.digests(self._scenario.outputs)))
        return self._recorder.history()

    # Snapshots: one attempt is looked at in many points, and only the resumes are run.

    @property
    def can_snapshot(self) -> bool:
        """Whether every service can go back to a saved world."""
        return all(isinstance(service, Restorable) for service in self._services)

    async def record(self, before: Schedule, points: Iterable[Point]) -> dict[Point, Snapshot]:
        """Run ``before``, then one attempt without a fault, and copy the world at ``points``.

        Returns:
            The snapshots of the points that the attempt passed, as far as there is room.
        """
        self._begin()
        album: dict[Point, Snapshot] = {}
        attempt = len(before.attempts) + 1

        def reached(point: Point) -> None:
            if not self._workspace.room_for_snapshots:
                return
            single = process_tree.is_single(self._launching.pid)
            if not single:
                self._launching.freeze()
            album[point] = self._snapshot(attempt, len(album))
            if not single:
                self._launching.thaw()

        self._workspace.clear_snapshots()
        await self._go_on(1, before, Stops(frozenset(points), reached))
        return album

    def _snapshot(self, attempt: int, number: int) -> Snapshot:
        folder = self._workspace.snapshot(number)
        worlds = []
        for service in self._services:
            assert isinstance(service, Restorable)
            (folder / service.name).mkdir()
            worlds.append(service.save(folder / service.name))
        events = self._recorder.history().events
        return Snapshot(attempt, folder, tuple(worlds), events, copy(self._numbers))

    async def resume(self, snapshot: Snapshot, schedule: Schedule) -> History:
        """Go on from ``snapshot`` as if the last fault of ``schedule`` had landed there."""
        self._recorder = Recorder(snapshot.events)
        self._numbers = copy(snapshot.numbers)
        self._workspace.go_back(snapshot.folder)
        for service, world in zip(self._services, snapshot.worlds, strict=True):
            assert isinstance(service, Restorable)
            service.restore(world, snapshot.folder / service.name)
        attempt = snapshot.attempt
        for fault in schedule.faults_of(attempt):
            self._recorder.add(FaultLanded(attempt, str(fault)))
        self._collect(attempt)
        killed = AttemptEnded(attempt=attempt, how="killed", code=int(signal.SIGKILL), seconds=0.0)
        self._recorder.add(killed)
        return await self._go_on(attempt + 1, schedule)

    def _is_final(self, ended: AttemptEnded) -> bool:
        if ended.how == "not-started" or (ended.how, ended.code) == ("exit", 0):
            return True
        return self._recorder.history().stated_end is not None

    async def _attempt(
        self, attempt: int, faults: Sequence[Fault], stops: Stops | None = None
    ) -> AttemptEnded:
        self._watch = Watch(
            attempt,
            faults,
            self._recorder,
            self._launching,
            self._reports.drain,
            self._numbers,
            stops,
        )
        self._recorder.add(AttemptStarted(attempt, resume=attempt > 1))
        self._reports.listen(eager=bool(self._watch.waits))
        output = Output()
        began = time.monotonic()
        how, code, leftovers = await self._live(attempt, output)
        if not all([await service.quiesce(QUIESCE_TIMEOUT_S) for service in self._services]):
            leftovers = [*leftovers, "a process that still holds a connection to a service"]
        self._reports.clear()
        self._collect(attempt)
        text = output.finish()
        ended = AttemptEnded(
            attempt=attempt,
            how=how,
            code=code,
            seconds=round(time.monotonic() - began, 6),
            leftovers=tuple(leftovers),
            output_bytes=output.total,
            output_tail=without_secrets(text)[-_TAIL_CHARACTERS:],
        )
        self._recorder.add(ended)
        return ended

    async def _live(self, attempt: int, output: Output) -> tuple[How, int, list[str]]:
        """The attempt's life, from its start until no process of it is left."""
        watch = self._watch
        assert watch is not None
        ending, why = await self._launching.start(
            self._argv(attempt), self._environment(watch), self._workspace.state, output.writer
        )
        output.started()
        if ending is None:
            output.note(why)
            return "not-started", 127, []
        loop = asyncio.get_running_loop()
        timers = [
            loop.call_later(delay_ms / 1000, watch.land, fault) for delay_ms, fault in watch.times
        ]
        timed_out = False
        try:
            async with asyncio.timeout(self.timeout_s):
                status = await asyncio.shield(ending)
        except TimeoutError:
            timed_out = True
            self._launching.kill()
            status = await ending
        finally:
            for timer in timers:
                timer.cancel()
        leftovers = [] if watch.killed or timed_out else await self._launching.leftovers(GRACE_S)
        self._launching.kill()
        if timed_out:
            return "timeout", int(signal.SIGKILL), leftovers
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            return "killed" if watch.killed else "signal", number, leftovers
        return "exit", os.waitstatus_to_exitcode(status), leftovers

    def _argv(self, attempt: int) -> list[str] | None:
        scenario = self._scenario
        if scenario.task is not None:
            return None
        words = scenario.resume if attempt > 1 and scenario.resume else scenario.command
        return [self._addresses.fill(word) for word in words]

    def _environment(self, watch: Watch) -> dict[str, str]:
        variables = self._addresses.variables(self._scenario.env)
        variables["CHAOSKIT_PROBE"] = str(self._workspace.socket)
        if watch.waits:
            variables["CHAOSKIT_PROBE_WAIT"] = ",".join(sorted(watch.waits))
        return variables

    def _collect(self, attempt: int) -> None:
        for service in self._services:
            for effect in service.collect():
                self._recorder.add(EffectApplied(attempt=attempt, effect=effect))

    # What services and tasks say goes to the watch over the attempt that is running.

    def _heard(self, message: Message) -> bool:
        return self._watch is not None and self._watch.heard(message)

    def received(self, request: RequestInfo) -> int | None:
        """See `chaoskit.model.hosting.Observer`; a request outside an attempt is nobody's."""
        return None if self._watch is None else self._watch.received(request)

    def applied(self, number: int, effects: Sequence[Effect]) -> bool:
        """See `chaoskit.model.hosting.Observer`."""
        return self._watch is not None and self._watch.applied(number, effects)

    def answering(self, number: int) -> None:
        """See `chaoskit.model.hosting.Observer`."""
        if self._watch is not None:
            self._watch.answering(number)

    def answered(self, number: int, status: int, *, deduped: bool, delivered: bool) -> None:
        """See `chaoskit.model.hosting.Observer`."""
        if self._watch is not None:
            self._watch.answered(number, status, deduped=deduped, delivered=delivered)

    def copy_state(self, folder: Path, bytes_max: int) -> bool:
        """Keep the last trial's work folder in ``folder``. False: larger than ``bytes_max``."""
        return self._workspace.copy_state(folder, bytes_max)
