"""The stage: everything around one task that is set up once and used for every trial.

Folders, the launcher, the probe's socket, and the started services with their addresses.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import compress
from pathlib import Path
from typing import Any

from chaoskit.model.behaviours import Behaviour, parse_behaviour
from chaoskit.model.changes import Change
from chaoskit.model.contract import Contract
from chaoskit.model.errors import HarnessError, UsageError, unknown_name
from chaoskit.model.events import FaultLanded
from chaoskit.model.hosting import (
    Address,
    Observer,
    Patient,
    Postponing,
    Restorable,
    Service,
    ServiceSettings,
)
from chaoskit.model.preludes import Changed
from chaoskit.model.schedule import Fault
from chaoskit.trial.addresses import Addresses, addresses
from chaoskit.trial.beside import Runner
from chaoskit.trial.launcher import COLD
from chaoskit.trial.launching import Launching
from chaoskit.trial.loading import Loaded, called
from chaoskit.trial.preludes import Circumstances, apply_world
from chaoskit.trial.recorder import Recorder
from chaoskit.trial.reports import Heard, Reports
from chaoskit.trial.services import create_services, service_names
from chaoskit.trial.tracing import TraceScope
from chaoskit.trial.workspace import Workspace
from chaoskit.trial.world import SERVICES, STATE, World

HOLD_TOTAL_S = 3.0
"""For how long in all services hold their answers back, at the most."""


class Stage:
    """See the module. `set_up` before, `tear_down` after, whatever happens."""

    workspace: Workspace
    launching: Launching
    reports: Reports
    addresses: Addresses
    scope: TraceScope
    world: World
    circumstances: Circumstances

    def __init__(self, loaded: Loaded, seed: int, work_root: Path | None = None) -> None:
        self._loaded = loaded
        self._scenario = loaded.scenario
        self._seed = seed
        self._behaviours = tuple(map(parse_behaviour, loaded.scenario.behaviours))
        self.services: list[Service] = create_services(loaded.scenario.services)
        self._check_behaviours()
        self._check_patterns()
        self._work_root = work_root
        self._other_inputs = False

    def _check_behaviours(self) -> None:
        for behaviour in self._behaviours:
            if behaviour.service not in self._scenario.services:
                raise unknown_name("service", behaviour.service, self._scenario.services)

    def _check_patterns(self) -> None:
        """Every pattern of the scenario must match something that its services can do.

        A database's operations come with its tables; of it only the name is looked at.
        """
        Contract.of(self._scenario.contract)
        known = [f"{s.name}.{operation}" for s in self.services for operation in s.operations]
        loose = tuple(f"{s.name}." for s in self.services if not s.operations)
        for pattern in (
            *self._scenario.contract,
            *self._scenario.identity,
            *self._scenario.settled,
        ):
            if pattern.startswith(loose) or any(fnmatchcase(name, pattern) for name in known):
                continue
            if loose and any(mark in pattern for mark in "*?["):
                continue
            raise unknown_name("operation", pattern, known or [f"{name}*" for name in loose])

    async def set_up(
        self, observer: Observer, heard: Heard, traced: Callable[[dict[str, Any]], None]
    ) -> None:
        """Make and start everything.

        Args:
            observer: is told of every request.
            heard: is told what the task reports.
            traced: is told what the tracer says.

        Raises:
            UsageError: tasks cannot be killed here, or a service cannot be started.
            ScenarioError: the scenario's inputs, tables or file cannot be used.
        """
        if not hasattr(os, "fork"):
            raise UsageError(
                f"tasks cannot be started and killed on {sys.platform}: run chaoskit on Linux, on "
                "macOS, or under WSL"
            )
        self.workspace = Workspace(self._work_root)
        try:
            self.launching = Launching(self.workspace.base, traced)
            self.reports = Reports(self.workspace.socket, heard)
            await self._start(observer)
        except BaseException:
            await self.tear_down()
            raise

    async def _start(self, observer: Observer) -> None:
        scenario = self._scenario
        workspace = self.workspace
        self._write_inputs()
        fill = scenario.prepare
        workspace.prepare(
            None if fill is None else lambda folder: called("prepare", fill, folder, self._seed)
        )
        known: dict[str, Address] = {}
        for service in self.services:
            options = {"tables": scenario.tables} if scenario.tables else {}
            folder = workspace.services / service.name
            folder.mkdir()
            known[service.name] = await service.start(observer, ServiceSettings(folder, 0, options))
        self.addresses = self._join(known)
        self.scope = TraceScope.of(workspace, known)
        folders = {STATE: workspace.state, SERVICES: workspace.services}
        self.world = World(folders, self.services, workspace.base / "reading")
        self.circumstances = Circumstances(scenario, self.services, workspace.state)
        for word in (*scenario.command, *scenario.resume, *scenario.env.values()):
            self.addresses.fill(word)
        if scenario.task is not None:
            if self._loaded.file is None:
                raise HarnessError("a Python task needs the file that it stands in")
            await self.launching.load(self._loaded.file, self._loaded.name)

    def _join(self, known: Mapping[str, Address]) -> Addresses:
        own = {
            "state": str(self.workspace.state),
            "seed": str(self._seed),
            "inputs": str(self.workspace.inputs),
            "here": str(self._loaded.here),
        }
        variables = {
            "CHAOSKIT_STATE_DIR": own["state"],
            "CHAOSKIT_SEED": own["seed"],
            "CHAOSKIT_INPUTS": own["inputs"],
        }
        return addresses(known, own, variables, service_names())

    async def tear_down(self) -> None:
        """Stop and remove everything."""
        for service in self.services:
            await service.stop()
        if hasattr(self, "reports"):
            self.reports.close()
        if hasattr(self, "launching"):
            self.launching.close()
        self.workspace.remove()

    def reset(self, seed_shift: int = 0) -> None:
        """An empty world; with other ids than usual where ``seed_shift`` is not 0."""
        self.workspace.refill()
        self.forget_preludes()
        for service in self.services:
            service.reset(self._seed + seed_shift, self._behaviours)

    def forget_preludes(self) -> None:
        """What was done before attempts of another trial holds no more; services see to theirs."""
        self.circumstances.reset()
        if self._other_inputs:
            self._write_inputs()
            self._other_inputs = False

    def _write_inputs(self) -> None:
        """The scenario's own inputs, if it has any."""
        self.workspace.inputs.unlink(missing_ok=True)
        if self._scenario.inputs is not None or self._loaded.take is not None:
            self.workspace.write_inputs(self._loaded.inputs(self._seed))

    async def before(self, attempt: int, preludes: Sequence[Fault], recorder: Recorder) -> None:
        """Do what comes before an attempt, and book that it was done.

        Raises:
            ScenarioError: a change of the scenario's failed.
        """
        circumstances = self.circumstances
        circumstances.begin()
        deeds = [fault.prelude for fault in preludes]
        done = []
        for deed in deeds:
            done.append(deed is not None and circumstances.do(deed))
            if isinstance(deed, Changed):
                await self._make(self._scenario.changes[deed.name])
        now = [deed for deed in deeds if isinstance(deed, Behaviour)]
        circumstances.behave(self._behaviours, now)
        circumstances.remember()
        for fault in compress(preludes, done):
            recorder.add(FaultLanded(attempt, str(fault)))

    async def _make(self, change: Change) -> None:
        if change.inputs is not None:
            self.workspace.write_inputs(self._loaded.inputs(self._seed, change.inputs))
            self._other_inputs = True
        await asyncio.to_thread(apply_world, change, self.workspace.state, self.variables())
        for service in self.services:
            service.collect()  # what the change wrote is not the task's

    def variables(self) -> dict[str, str]:
        """The task's whole environment, but for what one attempt is watched with."""
        circumstances = self.circumstances
        base = self.addresses.variables({**self._scenario.env, **circumstances.env})
        if circumstances.runs_cold and self._scenario.task is not None:
            own = base.get("PYTHONPATH", "")
            base["PYTHONPATH"] = os.pathsep.join(filter(None, (*sys.path, own)))
        return circumstances.moved_on(base, cold=self.argv(2) is not None)

    def runner(self, attempt: int, variables: Mapping[str, str]) -> Runner:
        """How a second runner is started beside the first."""
        folder, change = self.workspace.state, self.circumstances.current
        return Runner(self.argv(attempt), variables, folder, change)

    def delay_replies(self, seconds: float) -> None:
        """Let every service answer so late from now on, for a while."""
        for service in self.services:
            if isinstance(service, Patient):
                service.delay_replies(seconds, HOLD_TOTAL_S)

    @property
    def postponed(self) -> bool:
        """Whether a service has cut a request that it will carry out later."""
        return any(s.postponed for s in self.services if isinstance(s, Postponing))

    def end(self) -> None:
        """The task has ended: what services have postponed is carried out."""
        for service in self.services:
            if isinstance(service, Postponing):
                service.end()

    @property
    def can_go_back(self) -> bool:
        """Whether every service can go back to a saved world."""
        return all(isinstance(service, Restorable) for service in self.services)

    def argv(self, attempt: int) -> list[str] | None:
        """The command of an attempt; None for a Python function."""
        scenario, circumstances = self._scenario, self.circumstances
        if scenario.task is not None:
            if not circumstances.runs_cold:
                return None
            source = str(self._loaded.file), self._loaded.name, circumstances.current
            return [sys.executable, "-P", "-m", "chaoskit.trial.launcher", COLD, *source]
        words = scenario.resume if attempt > 1 and scenario.resume else scenario.command
        if circumstances.current:
            words = scenario.changes[circumstances.current].command
        program, *arguments = (self.addresses.fill(word) for word in words)
        return [self._program(program), *arguments]

    def _program(self, word: str) -> str:
        """A program that is named by a path, found from where the command was written down too.

        Its working directory is the work folder, where a path of that name goes first.
        """
        if "/" not in word or os.path.exists(self.workspace.state / word):
            return word
        there = self._loaded.here / word
        return str(there) if os.path.exists(there) else word
