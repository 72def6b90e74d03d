"""What is done to the world of one task before an attempt of it begins."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from chaoskit.model.actions import Beside, Pause, PowerLoss
from chaoskit.model.behaviours import Behaviour
from chaoskit.model.errors import UsageError, unknown_name
from chaoskit.model.hosting import Clocked, Misbehaving, Service
from chaoskit.model.points import CallPoint
from chaoskit.model.preludes import Changed, Clock, Damage, Prelude, Resumers
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Schedule
from chaoskit.trial.older import OlderCopy
from chaoskit.trial.services import services_by_name
from chaoskit.trial.workspace import Workspace


class Circumstances:
    """What holds for the attempts of one trial, and grows with each prelude.

    Attributes:
        shift_s: by how much all clocks have moved on.
        runners: how many processes the attempt to come is.
        env: variables that changes have set.
        current: the name of the change whose task or command is in force; empty for the scenario's.
    """

    def __init__(
        self, scenario: Scenario, services: Sequence[Service], workspace: Workspace
    ) -> None:
        self._scenario = scenario
        self._services = services
        self._workspace = workspace
        self._older = OlderCopy(workspace, covers)
        self._keeps = False
        self.reset()

    def reset(self) -> None:
        """As before the first attempt."""
        self.shift_s = 0
        self.runners = 1
        self.current = ""
        self.env: dict[str, str] = {}
        self._older.forget()
        self._behaving = False

    def check(self, schedule: Schedule) -> None:
        """Whether everything that ``schedule`` names can be done here.

        Raises:
            UsageError: a change or a service is unknown, a service cannot do that, or two faults
                of an attempt cannot be done together.
        """
        for number in range(1, len(schedule.attempts) + 1):
            _check_together(schedule, number)
        for fault in (f for faults in schedule.attempts for f in faults):
            prelude = fault.action
            if isinstance(prelude, PowerLoss) and self._workspace.cwd != self._workspace.home:
                raise UsageError(
                    f"{fault}: a loss of power is followed in the work folder only; add "
                    "--power-loss, which runs the command there"
                )
            if isinstance(prelude, Changed) and prelude.name not in self._scenario.changes:
                known = tuple(self._scenario.changes)
                if not known:
                    raise UsageError(f"{fault}: this scenario declares no changes=")
                raise unknown_name("change", prelude.name, known)
            if isinstance(prelude, Behaviour):
                there = self._there()
                if prelude.service not in there:
                    raise unknown_name("service", prelude.service, there)
                if not isinstance(there[prelude.service], Misbehaving):
                    raise UsageError(
                        f"{fault}: the service {prelude.service} cannot misbehave in one attempt "
                        "only; write it in behaviours= of the scenario"
                    )
        self._keeps = "damage:stale:" in str(schedule)

    def begin(self) -> None:
        """An attempt comes next; nothing is done to it yet."""
        self.runners = 1

    def do(self, prelude: Prelude) -> bool:
        """Do what comes before an attempt; files and inputs of a change are not done here.

        Returns:
            whether there was anything to do it to; a damage may find no file.
        """
        match prelude:
            case Clock():
                self.move_on(prelude.seconds)
            case Damage():
                return self._damage(prelude)
            case Resumers():
                self.runners = prelude.number
            case Changed():
                self._change(prelude.name)
            case Behaviour():
                pass  # all of them together, see `behave`
        return True

    def move_on(self, seconds: int) -> None:
        """Advance all clocks."""
        self.shift_s += seconds
        for service in self._services:
            if isinstance(service, Clocked):
                service.shift_clock(seconds)

    def _change(self, name: str) -> None:
        change = self._scenario.changes[name]
        self.env |= change.env
        if change.task is not None or change.command:
            self.current = name

    def behave(self, always: Sequence[Behaviour], now: Sequence[Behaviour]) -> None:
        """Let services misbehave as ever, and in these ways for this attempt, and no longer."""
        if not now and not self._behaving:
            return
        self._behaving = bool(now)
        for name, service in self._there().items():
            if isinstance(service, Misbehaving):
                service.behave([b for b in (*always, *now) if b.service == name])

    def _there(self) -> dict[str, Service]:
        """The services by the names that behaviours have for them, which say the backend too."""
        return services_by_name(self._scenario, self._services)

    # Files.

    def remember(self) -> None:
        """Keep the files as this attempt finds them, if they are to be put back one day: what is
        stale for the next one.
        """
        if self._keeps:
            self._older.make()

    def _files(self) -> dict[str, Path]:
        """Every regular file that the task has written, by its path relative to the area it works
        in; links are not followed.
        """
        area, written = self._workspace.area, self._workspace.written
        names = (file.relative_to(written).as_posix() for file in sorted(_walk(written)))
        return {name: area / name for name in names}

    def _damage(self, damage: Damage) -> bool:
        if damage.how == "stale":
            return self._older.put_back(damage.files)
        found = [file for name, file in self._files().items() if covers(damage.files, name)]
        for file in found:
            _damage_one(file, damage)
        return bool(found)


def _check_together(schedule: Schedule, number: int) -> None:
    faults = schedule.faults_of(number)
    beside = [fault for fault in faults if isinstance(fault.action, Beside)]
    several = [fault for fault in faults if isinstance(fault.action, Resumers)]
    if len(beside) > 1:
        raise UsageError(f"one second runner in an attempt, not {len(beside)}: {schedule}")
    if len(several) > 1:
        raise UsageError(f"an attempt has one number of resumers: {schedule}")
    if beside and isinstance(beside[0].action, Pause) and schedule.faults_of(number + 1):
        raise UsageError(
            f"attempt {number + 1} of {schedule} runs while attempt {number} is paused, "
            "and suffers no fault: write - for it"
        )
    calls = [fault for fault in faults if isinstance(fault.point, CallPoint)]
    if calls and (beside or several):
        raise UsageError(
            f"{calls[0]} cannot be done: attempt {number} of {schedule} has several runners, and "
            "the tracer follows one only; write a window or a crossing in its place"
        )


def covers(pattern: str, name: str) -> bool:
    """Whether a glob pattern matches a file, both relative to one folder.

    As `pathlib.Path.glob` understands it: ``*`` stays in one folder, ``**`` stands for any number
    of them. It is asked about files that are there no more, too.
    """
    return _covers(PurePosixPath(pattern).parts, PurePosixPath(name).parts)


def _covers(pattern: Sequence[str], name: Sequence[str]) -> bool:
    if not pattern or not name:
        return not pattern and not name
    if pattern[0] == "**":
        return _covers(pattern[1:], name) or _covers(pattern, name[1:])
    return fnmatchcase(name[0], pattern[0]) and _covers(pattern[1:], name[1:])


def _walk(folder: Path) -> Iterator[Path]:
    for where, _, names in os.walk(folder):
        for file in (Path(where, name) for name in names):
            if file.is_file() and not file.is_symlink():
                yield file


def _damage_one(file: Path, damage: Damage) -> None:
    content = file.read_bytes()
    match damage.how:
        case "torn":
            file.write_bytes(content[: len(content) - max(1, len(content) // 3)])
        case "zero":
            file.write_bytes(bytes(len(content)))
        case "empty":
            file.write_bytes(b"")
        case "missing":
            file.unlink()
