"""From a name to a scenario: a file's path, ``path:name``, or words of the command line."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from chaoskit.model.errors import ScenarioError, UsageError, unknown_name
from chaoskit.model.scenario import Scenario
from chaoskit.model.token import Target
from chaoskit.trial.launcher import load_module, modules_of

DEFAULT_NAME = "scenario"
_SOURCE_BYTES_MAX = 16 << 20
_SKIPPED = {".venv", ".git", "node_modules", "__pycache__", "build", "dist"}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A scenario with where it came from. ``file`` is None for one of the command line.

    ``take``: only so many leading items of its inputs are kept; None: all of them.
    """

    scenario: Scenario
    target: Target
    file: Path | None
    name: str
    here: Path
    take: int | None = None

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
        made = None if make is None else make(seed)
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
            env=spec.env,
            services=spec.services,
            outputs=spec.outputs,
            contract=spec.contract,
            behaviours=spec.behaviours,
            tables=spec.tables,
            timeout_s=spec.timeout_s,
        )
        return Loaded(scenario, target, None, DEFAULT_NAME, Path.cwd(), take)
    path, _, name = target.scenario.partition(":")
    return replace(_from_file(target, Path(path), name or DEFAULT_NAME), take=take)


def _from_file(target: Target, path: Path, name: str) -> Loaded:
    if not path.is_file():
        raise unknown_name("scenario", str(path), map(str, scenario_files(Path())))
    file = path.resolve()
    known = scenarios_in(path)
    if name not in known:
        if not known:
            raise ScenarioError(f"{path} has no scenario: write `scenario = Scenario(…)` in it")
        raise unknown_name(f"scenario in {path}", name, known)
    return Loaded(known[name], target, file, name, file.parent)


def scenarios_in(path: Path) -> dict[str, Scenario]:
    """The scenarios of a file by their names, in the order of the file.

    Raises:
        ScenarioError: the file cannot be imported.
    """
    try:
        module = load_module(str(path.resolve()))
    except UsageError:
        raise
    except Exception as error:
        raise ScenarioError(
            f"{path} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    return {key: value for key, value in vars(module).items() if isinstance(value, Scenario)}


def sources(loaded: Loaded) -> bytes:
    """A digest of every file that makes the task what it is, as far as it can be seen.

    These are the modules from the scenario's folders, and the files that a command names.
    """
    files = set(modules_of(str(loaded.file)).values()) if loaded.file is not None else set()
    scenario = loaded.scenario
    words = (*scenario.command, *scenario.resume)
    files |= {word.replace("{here}", str(loaded.here)) for word in words}
    files |= {
        str(loaded.here / command[0]) for command in (scenario.command, scenario.resume) if command
    }
    digest = hashlib.sha256()
    for file in sorted(files):
        path = Path(file)
        if path.is_file() and path.stat().st_size <= _SOURCE_BYTES_MAX:
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
