"""The stage: everything around one task that is set up once and used for every trial.

Folders, the launcher, the probe's socket, and the started services with their addresses.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain, compress
from pathlib import Path
from typing import Any

from chaoskit.model.behaviours import Behaviour, parse_behaviour
from chaoskit.model.changes import Change
from chaoskit.model.contract import Contract
from chaoskit.model.errors import HarnessError, ScenarioError, UsageError, unknown_name
from chaoskit.model.events import FaultLanded, StateObserved
from chaoskit.model.hosting import (
    Address,
    Keyed,
    Misbehaving,
    Observer,
    Patient,
    Postponing,
    Restorable,
    Service,
    ServiceSettings,
)
from chaoskit.model.preludes import Changed, Prelude
from chaoskit.model.schedule import Fault
from chaoskit.trial import files
from chaoskit.trial.addresses import Addresses, addresses
from chaoskit.trial.beside import Runner
from chaoskit.trial.conduct import QUIESCE_TIMEOUT_S
from chaoskit.trial.launching import Launching
from chaoskit.trial.loading import Loaded, called
from chaoskit.trial.preludes import Circumstances
from chaoskit.trial.preparing import prepare
from chaoskit.trial.recorder import Recorder
from chaoskit.trial.reports import Heard, Reports
from chaoskit.trial.services import create_services, service_names, services_by_name
from chaoskit.trial.task_modules import CONTROL
from chaoskit.trial.tracing import TraceScope
from chaoskit.trial.view import View
from chaoskit.trial.workspace import Workspace
from chaoskit.trial.world import World

VIEW_VARIABLE = "CHAOSKIT_VIEW"
"""Set to ``off`` it makes tasks run on the real file system, each trial by a real kill where they
change anything outside the work folder.
"""

HOLD_TOTAL_S = 3.0
"""For how long in all services hold their answers back, at the most."""


class Stage:
    """See the module. `set_up` before, `tear_down` after, whatever happens.

    Attributes:
        scenario: what is run.
        services: the fake services, in the scenario's order.
        view: the copy-on-write view in which the task runs; None: there is none here.
        no_view: why there is none.
    """

    workspace: Workspace
    launching: Launching
    reports: Reports
    addresses: Addresses
    scope: TraceScope
    world: World
    circumstances: Circumstances

    def __init__(self, loaded: Loaded, seed: int, work_root: Path | None = None) -> None:
        self._loaded = loaded
        self.scenario = loaded.scenario
        self._seed = seed
        self._behaviours = tuple(map(parse_behaviour, loaded.scenario.behaviours))
        self.services: list[Service] = create_services(loaded.scenario.services, loaded.here)
        self._check_behaviours()
        self._check_patterns()
        self._set_key_lifetimes()
        self._work_root = work_root
        self.view: View | None = None
        self.no_view = ""
        self._other_inputs = False

    def _check_behaviours(self) -> None:
        there = services_by_name(self.scenario, self.services)
        for behaviour in self._behaviours:
            if behaviour.service not in there:
                raise unknown_name("service", behaviour.service, there)

    def _set_key_lifetimes(self) -> None:
        there = services_by_name(self.scenario, self.services)
        for name, seconds in self.scenario.key_lifetimes_s.items():
            if name not in there:
                raise unknown_name("service", name, there)
            service = there[name]
            if not isinstance(service, Keyed):
                able = [n for n, one in there.items() if isinstance(one, Keyed)]
                raise UsageError(
                    f"key_lifetime= of {name}: that service remembers no idempotency keys"
                    + (f"; these do: {', '.join(able)}" if able else "; leave it out")
                )
            service.keep_keys(seconds)

    def _check_patterns(self) -> None:
        """Every pattern of the scenario must match something that its services can do.

        A database's operations come with its tables; of it only the name is looked at.
        """
        Contract.of(self.scenario.contract)
        known = [f"{s.name}.{operation}" for s in self.services for operation in s.operations]
        loose = tuple(f"{s.name}." for s in self.services if not s.operations)
        for pattern in (
            *self.scenario.contract,
            *self.scenario.identity,
            *self.scenario.settled,
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
        scenario = self.scenario
        workspace = self.workspace
        await self._enter_view()
        self._write_inputs()
        fill = scenario.prepare
        if callable(fill):
            home = Path(workspace.home)
            self._make_there(lambda: called("prepare", fill, home, self._seed))
        known: dict[str, Address] = {}
        for service in self.services:
            options = {"tables": scenario.tables} if scenario.tables else {}
            folder = workspace.services / service.name
            folder.mkdir()
            known[service.name] = await service.start(observer, ServiceSettings(folder, 0, options))
        self.addresses = self._join(known)
        self.scope = TraceScope.of(
            workspace, known, scenario.allow, everywhere=self.view is not None
        )
        self.world = World(workspace, self.services, self.view)
        self.world.begins_here()
        self.circumstances = Circumstances(scenario, self.services, workspace)
        for word in (*chain(*scenario.commands), *scenario.env.values()):
            self.addresses.fill(word)
        if scenario.task is not None:
            if self._loaded.file is None:
                raise HarnessError("a Python task needs the file that it stands in")
            await self.launching.load(self._loaded.file, self._loaded.name)

    def _join(self, known: Mapping[str, Address]) -> Addresses:
        own = {
            "state": self.workspace.home,
            "seed": str(self._seed),
            "inputs": str(self.workspace.inputs),
            "here": str(self._loaded.here),
        }
        variables = {
            "CHAOSKIT_STATE_DIR": own["state"],
            "CHAOSKIT_SEED": own["seed"],
            "CHAOSKIT_INPUTS": own["inputs"],
        }
        return addresses(known, own, variables, service_names(), self.scenario.instances)

    async def tear_down(self) -> None:
        """Stop and remove everything."""
        for service in self.services:
            await service.stop()
        if hasattr(self, "reports"):
            self.reports.close()
        if hasattr(self, "launching"):
            self.launching.close()
        self.workspace.remove()

    async def reset(self, seed_shift: int = 0, *, norm: bool = False, ahead_s: int = 0) -> None:
        """The world as every trial finds it: empty, and then prepared as the scenario says.

        Args:
            seed_shift: with other ids than usual where it is not 0.
            norm: the run to come says what is expected: its services behave, and where the scenario
                has a control, that one is run.
            ahead_s: by how much all clocks are ahead.

        Raises:
            ScenarioError: the command that prepares it failed.
        """
        await self.world.reset()
        self.forget_preludes()
        behaviours = () if norm else self._behaviours
        for service in self.services:
            service.reset(self._seed + seed_shift, behaviours)
        self.circumstances.move_on(ahead_s)
        await self._prepare(behaviours)
        if norm and self.scenario.control:
            self.circumstances.current = CONTROL

    async def _prepare(self, behaviours: Sequence[Behaviour]) -> None:
        """Run the command that makes the starting state, if there is one; services behave."""
        command = self.scenario.prepare
        if not command or callable(command):
            return
        misbehaving = [s for s in self.services if isinstance(s, Misbehaving)] if behaviours else []
        for one in misbehaving:
            one.behave(())
        variables, folder = self.variables(), self.workspace.cwd
        runner = Runner(self._filled(command), variables, folder, shift_ns=self.shift_ns)
        await prepare(self.launching, runner, self.scope)
        for service in self.services:
            await service.quiesce(QUIESCE_TIMEOUT_S)
            service.collect()  # what was there before is not the task's
        for one in misbehaving:
            one.behave(behaviours, anew=True)

    @property
    def has_norm(self) -> bool:
        """Whether other runs than those of the task as it is tried say what is expected."""
        return bool(self._behaviours or self.scenario.control)

    def forget_preludes(self) -> None:
        """What was done before attempts of another trial holds no more; services see to theirs."""
        self.circumstances.reset()
        if self._other_inputs:
            self._write_inputs()
            self._other_inputs = False

    def _write_inputs(self) -> None:
        """The scenario's own inputs, if it has any."""
        self.workspace.inputs.unlink(missing_ok=True)
        if self.scenario.inputs is not None or self._loaded.take is not None:
            self.workspace.write_inputs(self._loaded.inputs(self._seed))

    async def before(self, attempt: int, preludes: Sequence[Fault], recorder: Recorder) -> None:
        """Do what comes before an attempt, and book that it was done.

        Raises:
            ScenarioError: a change of the scenario's failed.
        """
        circumstances = self.circumstances
        circumstances.begin()
        deeds = [fault.action for fault in preludes]
        done = []
        for deed in deeds:
            if isinstance(deed, Changed) and self._too_early(deed, recorder):
                done.append(False)
                continue
            done.append(isinstance(deed, Prelude) and circumstances.do(deed))
            if isinstance(deed, Changed):
                await self._make(self.scenario.changes[deed.name])
        now = [deed for deed in deeds if isinstance(deed, Behaviour)]
        circumstances.behave(self._behaviours, now)
        circumstances.remember()
        for fault in compress(preludes, done):
            recorder.add(FaultLanded(attempt, str(fault)))

    def _too_early(self, changed: Changed, recorder: Recorder) -> bool:
        """Whether nothing is bound yet to what the change would change."""
        after = self.scenario.changes[changed.name].after
        return bool(after) and recorder.history().done_at(after) is None

    async def _make(self, change: Change) -> None:
        if change.inputs is not None:
            self.workspace.write_inputs(self._loaded.inputs(self._seed, change.inputs))
            self._other_inputs = True
        if change.world is not None:
            deed, variables = change.world, self.variables()
            home = Path(self.workspace.home)
            await asyncio.to_thread(
                self._make_there, lambda: called("changes", deed, home, variables)
            )
        for service in self.services:
            service.collect()  # what the change wrote is not the task's

    def _make_there(self, deed: Callable[[], object]) -> None:
        """Do what a scenario says to the task's files, where the task finds them.

        Raises:
            ScenarioError: it failed.
        """
        try:
            deed() if self.view is None else self.view.run(deed)
        except ScenarioError:
            raise
        except Exception as error:
            told = str(error) if self.view is not None else f"{type(error).__name__}: {error}"
            raise ScenarioError(told) from error

    async def _enter_view(self) -> None:
        """Where this machine allows it, the task sees the whole file system copy-on-write."""
        if os.environ.get(VIEW_VARIABLE) == "off":
            self.no_view = f"{VIEW_VARIABLE} says off"
            return
        told = await self.launching.enter_view()
        if told["view"] is None:
            self.no_view = str(told["why"])
            if self._loaded.clean:
                raise UsageError(f"--clean hides nothing here, without a view: {self.no_view}")
            return
        self.view = View(self.launching, told)
        self.workspace.enter(self.view, str(self._loaded.here) if self._loaded.typed else "")
        for path in self._loaded.clean:
            self._hide(str(self._loaded.here / path))

    def _hide(self, path: str) -> None:
        """Let the task not find what is there.

        Raises:
            UsageError: nothing is.
        """
        if not os.path.lexists(path):
            raise UsageError(f"--clean: there is no {path}")
        self._make_there(partial(files.remove, path))

    def variables(self) -> dict[str, str]:
        """The task's whole environment, but for what one attempt is watched with."""
        own = {**self.scenario.env, **self.circumstances.env}
        return self.addresses.variables({**self._homes(), **own})

    def outputs(self, known: Mapping[str, str]) -> StateObserved:
        """The files that must end up alike; see `Workspace.observed`."""
        return self.workspace.observed(self.scenario.outputs, self._user(), known)

    def records(self) -> dict[str, int]:
        """The sizes of the files that record completed steps."""
        return self.workspace.sizes(self.scenario.recorded, self._user())

    def _user(self) -> str:
        return self.variables().get("HOME") or os.path.expanduser("~")

    def _homes(self) -> dict[str, str]:
        """Without a view, where programs keep their own files: in the work folder, too."""
        if self.view is not None or os.environ.get(VIEW_VARIABLE) == "off":
            return {}
        home = f"{self.workspace.home}/.home"
        temporary = os.path.join(home, "tmp")
        os.makedirs(temporary, exist_ok=True)
        names = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
        return {"HOME": home, "TMPDIR": temporary} | {n: f"{home}/{n.lower()}" for n in names}

    def runner(self, attempt: int, variables: Mapping[str, str]) -> Runner:
        """How a second runner is started beside the first."""
        folder, change = self.workspace.cwd, self.circumstances.current
        return Runner(self.argv(attempt), variables, folder, change, self.shift_ns, self.success)

    @property
    def success(self) -> tuple[int, ...]:
        """The exit codes that mean success for this task."""
        return tuple(self.scenario.success)

    @property
    def shift_ns(self) -> int:
        """By how much the task's clock is ahead of the machine's."""
        return self.world.ahead_ns + self.circumstances.shift_s * 10**9

    def delay_replies(self, seconds: float) -> None:
        """Let every service answer so late from now on, for a while."""
        for service in self.services:
            if isinstance(service, Patient):
                service.delay_replies(seconds, HOLD_TOTAL_S)

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
        scenario, circumstances = self.scenario, self.circumstances
        if scenario.task is not None:
            return None
        words = scenario.resume if attempt > 1 and scenario.resume else scenario.command
        if circumstances.current == CONTROL:
            assert not callable(scenario.control), "the scenario has a command"
            words = scenario.control
        elif circumstances.current:
            words = scenario.changes[circumstances.current].command
        return self._filled(words)

    def _filled(self, words: Sequence[str]) -> list[str]:
        """A command as it is executed."""
        program, *arguments = (self.addresses.fill(word) for word in words)
        return [self._program(program), *arguments]

    def _program(self, word: str) -> str:
        """A program that is named by a path, found from where the command was written down too.

        Its working directory is the work folder, where a path of that name goes first. As typed, it
        runs where it was written down.
        """
        workspace = self.workspace
        typed = workspace.cwd != workspace.home
        if "/" not in word or typed or os.path.exists(workspace.state / word):
            return word
        there = self._loaded.here / word
        return str(there) if os.path.exists(there) else word
