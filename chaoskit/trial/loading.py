"""From a name to a scenario: a file's path, ``path:name``, or words of the command line."""

from __future__ import annotations

import ast
import hashlib
import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from chaoskit.model.errors import ScenarioError, UsageError, naming, nearest, unknown_name
from chaoskit.model.scenario import Scenario
from chaoskit.model.token import Target
from chaoskit.trial.task_modules import load_module, modules_of

_T = TypeVar("_T")

DEFAULT_NAME = "scenario"
_SOURCE_BYTES_MAX = 16 << 20
_SKIPPED = {".venv", ".git", "node_modules", "__pycache__", "build", "dist"}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A scenario with where it came from. ``file`` is None for one of the command line.

    ``take``: only so many leading items of its inputs are kept; None: all of them. ``typed``: the
    command is to run where it was typed; ``clean``: what it does not find there.
    """

    scenario: Scenario
    target: Target
    file: Path | None
    name: str
    here: Path
    take: int | None = None
    typed: bool = False
    clean: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """One sentence for lists."""
        return self.scenario.title or self.target.label

    def inputs(self, seed: int, other: Callable[[int], object] | None = None) -> object:
        """The task's inputs; the leading items of them where ``take`` says how many.

        Args:
            seed: decides them.
            other: makes them in place of the scenario's own (a change's).

        Raises:
            ScenarioError: only a list has leading items, and there cannot be less than none.
        """
        make = other or self.scenario.inputs
        made = None if make is None else called("inputs", make, seed)
        if self.take is None:
            return made
        if not isinstance(made, list | tuple):
            what = "has no inputs" if make is None else f"has a {type(made).__name__} as inputs"
            raise ScenarioError(
                f"the first {self.take} items of the inputs cannot be taken: {self.target.label} "
                f"{what}, and only a list has items"
            )
        if self.take < 0:
            raise ScenarioError(f"there are no first {self.take} items of the inputs")
        return list(made[: self.take])


def called(name: str, function: Callable[..., _T], *given: object) -> _T:
    """What a function of the scenario's returns.

    Raises:
        ScenarioError: it raised something.
    """
    try:
        return function(*given)
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)[1:]
        where = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        raise ScenarioError(
            f"{name}= of the scenario failed: {type(error).__name__}: {error}{where}"
        ) from error


def load(target: Target, take: int | None = None) -> Loaded:
    """The scenario that ``target`` names, with the first ``take`` items of its inputs.

    Raises:
        UsageError: there is no such file or name; the message gives the nearest ones.
        ScenarioError: the file cannot be imported, or the scenario contradicts itself.
    """
    if target.command is not None:
        spec = target.command
        scenario = Scenario(
            command=spec.command,
            resume=spec.resume,
            control=spec.control,
            env=spec.env,
            services=spec.services,
            outputs=spec.outputs,
            contract=spec.contract,
            behaviours=spec.behaviours,
            recorded=spec.recorded,
            tables=spec.tables,
            allow=spec.allow,
            timeout_s=spec.timeout_s,
            key_lifetime=spec.key_lifetime,
            resumed_within=spec.resumed_within or None,
        )
        here = Path.cwd()
        return Loaded(
            scenario.for_instances(),
            *(target, None, DEFAULT_NAME, here, take),
            typed=spec.typed,
            clean=spec.clean,
        )
    path, _, name = target.scenario.partition(":")
    return replace(_from_file(target, Path(path), name or DEFAULT_NAME), take=take)


def _from_file(target: Target, path: Path, name: str) -> Loaded:
    if not os.path.isfile(path):  # Path.is_file() raises for some words
        raise _no_file(path)
    with naming(path, "cannot be read", "see who may read it (ls -l)"):
        os.close(os.open(path, os.O_RDONLY))
    if path.suffix != ".py":
        raise ScenarioError(f"{path} is not a Python file with a scenario; {_as_command(path)}")
    file = path.resolve()
    may = _may_have(path, name)
    known = scenarios_in(path) if may else {}
    if name not in known:
        if not known:
            unread = "" if may else " (it does not mention chaoskit, and was not run)"
            raise ScenarioError(
                f"{path} has no scenario{unread}: write `scenario = Scenario(…)` in it; "
                f"{_as_command(path)}"
            )
        raise unknown_name(f"scenario in {path}", name, known)
    return Loaded(known[name].for_instances(), target, file, name, file.parent)


def _no_file(path: Path) -> UsageError:
    near = nearest(str(path), map(str, scenario_files(Path())))
    if os.path.isdir(path):
        what = f"{path} is a folder: give a scenario's file"
    else:
        command = "" if path.suffix == ".py" else "; a command goes after --"
        what = f"there is no file {path}{command}"
    return UsageError(f"{what}; nearest: {', '.join(near)}" if near else what)


def _as_command(path: Path) -> str:
    """How a program is run that was given where a scenario's file is."""
    if path.suffix == ".py":  # a mere argument is looked for in the work folder
        file = str(path) if path.is_absolute() else f'"$PWD/{path}"'
        words = f"python {file}"
    else:
        words = str(path) if len(path.parts) > 1 else f"./{path}"
    return f"to run it as a command: chaoskit run … -- {words}"


def scenarios_in(path: Path) -> dict[str, Scenario]:
    """The scenarios of a file by their names, in the order of the file.

    Raises:
        ScenarioError: the file cannot be imported.
    """
    try:
        module = load_module(str(path.resolve()))
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        raise ScenarioError(
            f"{path} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    return {key: value for key, value in vars(module).items() if isinstance(value, Scenario)}


def _may_have(path: Path, name: str) -> bool:
    """Whether a file mentions chaoskit, or makes or imports ``name``. Any other one may be the
    program itself: imported, it would do in earnest what it does.
    """
    try:
        text = path.read_bytes()
        nodes = [] if b"chaoskit" in text else ast.walk(ast.parse(text))
    except (OSError, SyntaxError, ValueError):
        return True  # the import says it better, and runs nothing
    return b"chaoskit" in text or any(
        (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name)
        or (isinstance(node, ast.alias) and (node.asname or node.name) == name)
        for node in nodes
    )


def sources(loaded: Loaded) -> bytes:
    """A digest of every file that makes the task what it is, as far as it can be seen.

    These are the modules from the scenario's folders, and the files that a command names.
    """
    files = set(modules_of(str(loaded.file)).values()) if loaded.file is not None else set()
    scenario = loaded.scenario
    commands = scenario.commands
    files |= {word.replace("{here}", str(loaded.here)) for words in commands for word in words}
    files |= {str(loaded.here / program) for program, *_ in commands}
    digest = hashlib.sha256()
    for file in sorted(files):
        path = Path(file)
        # A word may be a whole program, too long for a name, of which Path.is_file() raises.
        if os.path.isfile(path) and path.stat().st_size <= _SOURCE_BYTES_MAX:
            digest.update(file.encode(errors="surrogateescape") + b"\0" + path.read_bytes())
    return digest.digest()


def scenario_files(root: Path) -> list[Path]:
    """Every Python file below a folder named ``scenarios`` under ``root``, sorted."""
    found: list[Path] = []
    for folder in sorted(root.glob("**/scenarios")):
        if _SKIPPED.isdisjoint(folder.parts) and folder.is_dir():
            found.extend(
                file
                for file in sorted(folder.rglob("*.py"))
                if _SKIPPED.isdisjoint(file.parts) and not file.name.startswith("_")
            )
    return found
