"""Running small tasks under the tracer, and looking at what each kill left behind."""

from __future__ import annotations

import asyncio
import stat
import sys
import textwrap
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chaoskit.model.events import CallSeen, TraceNoted
from chaoskit.model.history import History
from chaoskit.model.points import CallPoint, parse_point
from chaoskit.model.schedule import parse_schedule
from chaoskit.model.token import CommandSpec, Target
from chaoskit.trial.conduct import Conduct
from chaoskit.trial.loading import load
from chaoskit.trial.supervisor import Supervisor

Files = dict[str, tuple[int, bytes]]
"""Relative path to mode and content (of a link: where it leads) of everything in a folder."""

NOTHING = ("true",)
"""As the resume of a task: what a kill left stays as it is."""


def python(source: str, **how: object) -> CommandSpec:
    """A cold Python program, which is not resumed: its resume does nothing."""
    words = (sys.executable, "-I", "-S", "-c", textwrap.dedent(source))
    return CommandSpec(command=words, resume=NOTHING, **how)  # type: ignore[arg-type]


def shell(source: str, **how: object) -> CommandSpec:
    """A bash script, which is not resumed."""
    words = ("bash", "-c", textwrap.dedent(source))
    return CommandSpec(command=words, resume=NOTHING, **how)  # type: ignore[arg-type]


def scenario(folder: Path, source: str, name: str = "scenario") -> Target:
    """A scenario file with this source; ``name`` says which one of it."""
    file = folder / f"scenario_{abs(hash(source))}.py"
    file.write_text(textwrap.dedent(source), encoding="utf-8")
    return Target(scenario=f"{file}:{name}")


@dataclass(frozen=True, slots=True)
class Ran:
    """One trial: its history, and the work folder as it was at the end."""

    history: History
    files: Files = field(default_factory=dict)

    @property
    def calls(self) -> dict[str, list[str]]:
        """The points of the first attempt, in order, by process."""
        found: dict[str, list[str]] = {}
        for _, seen in self.history.of(CallSeen):
            point = parse_point(seen.call)
            assert isinstance(point, CallPoint)
            if seen.attempt == 1:
                found.setdefault(point.who, []).append(seen.call.removeprefix(f"{point.who}:"))
        return found

    @property
    def notes(self) -> list[tuple[str, str]]:
        """What the tracer noted."""
        return [(note.what, note.detail) for _, note in self.history.of(TraceNoted)]

    @property
    def ends(self) -> list[str]:
        """How each attempt ended, with its status."""
        return [f"{ended.how} {ended.code}" for _, ended in self.history.attempts]

    @property
    def output(self) -> str:
        """What the first attempt printed."""
        return self.history.attempts[0][1].output_tail


def files_in(folder: Path) -> Files:
    """Everything in a folder."""
    found: Files = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content = b""
        if stat.S_ISREG(mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(mode):
            content = bytes(path.readlink())
        found[str(path.relative_to(folder))] = mode, content
    return found


def contents(files: Files) -> dict[str, bytes]:
    """The bytes of the regular files only."""
    return {path: content for path, (mode, content) in files.items() if stat.S_ISREG(mode)}


def with_supervisor(
    what: CommandSpec | Target,
    then: Callable[[Supervisor], Awaitable[None]],
    *,
    timeout_s: float = 300.0,
    skip_sleeps: bool = False,
    work_root: Path | None = None,
) -> None:
    """Do something with a supervisor that traces every call."""
    target = Target(command=what) if isinstance(what, CommandSpec) else what

    async def go() -> None:
        async with Supervisor(load(target), 0, work_root) as supervisor:
            supervisor.conduct = Conduct(timeout_s, calls=True, skip_sleeps=skip_sleeps)
            await then(supervisor)

    asyncio.run(go())


def history_of(supervisor: Supervisor) -> History:
    """What was seen in the trial that ran last."""
    trial = supervisor._ears.trial
    assert trial is not None
    return trial.state.recorder.history()


def state_of(supervisor: Supervisor) -> Files:
    """The work folder as it is now."""
    return files_in(supervisor._stage.workspace.state)


def traced(
    what: CommandSpec | Target,
    schedules: Sequence[str] = ("none",),
    *,
    timeout_s: float = 300.0,
    skip_sleeps: bool = False,
) -> list[Ran]:
    """One trial for each schedule, traced."""
    ran: list[Ran] = []

    async def then(supervisor: Supervisor) -> None:
        for text in schedules:
            history = await supervisor.run(parse_schedule(text))
            ran.append(Ran(history, state_of(supervisor)))

    with_supervisor(what, then, timeout_s=timeout_s, skip_sleeps=skip_sleeps)
    return ran
