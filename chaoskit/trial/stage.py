"""The stage: everything around one task that is set up once and used for every trial.

Folders, the launcher, the probe's socket, and the started services with their addresses.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from chaoskit.model.behaviours import parse_behaviour
from chaoskit.model.contract import Contract
from chaoskit.model.errors import HarnessError, UsageError, unknown_name
from chaoskit.model.hosting import (
    Address,
    Observer,
    Patient,
    Restorable,
    Service,
    ServiceSettings,
)
from chaoskit.trial.addresses import Addresses, addresses
from chaoskit.trial.launching import Launching
from chaoskit.trial.loading import Loaded
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

    def __init__(self, loaded: Loaded, seed: int, work_root: Path | None = None) -> None:
        self._loaded = loaded
        self._scenario = loaded.scenario
        self._seed = seed
        self._behaviours = tuple(map(parse_behaviour, loaded.scenario.behaviours))
        self.services: list[Service] = create_services(loaded.scenario.services)
        self._check_behaviours()
        self._check_patterns()
        self._work_root = work_root

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
        if scenario.inputs is not None or self._loaded.take is not None:
            workspace.write_inputs(self._loaded.inputs(self._seed))
        fill = scenario.prepare
        workspace.prepare(None if fill is None else lambda folder: fill(folder, self._seed))
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
        for service in self.services:
            service.reset(self._seed + seed_shift, self._behaviours)

    def delay_replies(self, seconds: float) -> None:
        """Let every service answer so late from now on, for a while."""
        for service in self.services:
            if isinstance(service, Patient):
                service.delay_replies(seconds, HOLD_TOTAL_S)

    @property
    def can_go_back(self) -> bool:
        """Whether every service can go back to a saved world."""
        return all(isinstance(service, Restorable) for service in self.services)

    def argv(self, attempt: int) -> list[str] | None:
        """The command of an attempt; None for a Python function."""
        scenario = self._scenario
        if scenario.task is not None:
            return None
        words = scenario.resume if attempt > 1 and scenario.resume else scenario.command
        return [self.addresses.fill(word) for word in words]
