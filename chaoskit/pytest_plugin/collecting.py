"""Tests that nobody writes: each scenario of the files that ``--chaos-scenarios`` names is one."""

from __future__ import annotations

import glob
import shlex
from collections.abc import Callable, Generator, Iterable
from fnmatch import fnmatch
from pathlib import Path

import pytest


class Scenarios:
    """The part of the plugin that is there only where ``--chaos-scenarios`` or its ini key is.

    The files are collected besides everything else when pytest is started without paths, and else
    only as far as the paths lead to them, so that ``pytest tests/test_one.py`` stays what it says.

    Raises:
        pytest.UsageError: a glob matches no file.
    """

    def __init__(self, config: pytest.Config, globs: str) -> None:
        by_option = config.getoption("--chaos-scenarios") is not None
        root = config.invocation_params.dir if by_option else config.rootpath
        self._files = {file: None for text in shlex.split(globs) for file in _matches(root, text)}
        if config.args_source != pytest.Config.ArgsSource.ARGS:
            config.args += [str(file) for file in self._to_name(config)]

    def _to_name(self, config: pytest.Config) -> list[Path]:
        """The files that are to be named beside the paths that pytest starts with.

        Before version 9, pytest loses a folder's other files where one of them is named too.
        """
        if pytest.version_tuple >= (9,):
            return list(self._files)
        here = config.invocation_params.dir
        folders = {(here / arg).resolve() for arg in config.args}
        return [file for file in self._files if folders.isdisjoint(file.parents)]

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        """The scenarios of a file, and its tests if it is named as test files are."""
        found = yield
        if file_path.resolve() not in self._files:
            return found
        tests = any(fnmatch(file_path.name, p) for p in parent.config.getini("python_files"))
        kept = [one for one in found if tests or not isinstance(one, pytest.Module)]
        return [*kept, ScenarioFile.from_parent(parent, path=file_path)]


class ScenarioFile(pytest.File):
    """A file with scenarios."""

    def collect(self) -> Iterable[pytest.Item]:
        """An item for each scenario, under its name; of two names of one scenario the first."""
        from chaoskit.model.errors import ChaoskitError
        from chaoskit.trial.loading import scenarios_in

        try:
            found = scenarios_in(self.path)
        except ChaoskitError as error:
            raise self.CollectError(f"chaoskit: {error}") from error
        if not found:
            raise self.CollectError(
                f"chaoskit: {self.path.name} has no scenario: write `scenario = Scenario(…)` in "
                "it, or begin its name with _ if it is no scenario's file"
            )
        known: set[int] = set()
        for name, scenario in found.items():
            if id(scenario) not in known:
                known.add(id(scenario))
                yield ScenarioItem.from_parent(self, name=name, callobj=_test())


class ScenarioItem(pytest.Function):
    """One scenario as a test: the one that would be written with the marker and the fixture."""

    def __init__(self, name: str, parent: ScenarioFile, **given: object) -> None:
        super().__init__(name, parent, **given)  # type: ignore[arg-type]
        self.add_marker(pytest.mark.chaos(f"{self.path}:{name}"))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where it is: in the scenario's file."""
        return self.path, 0, self.name


def _test() -> Callable[..., None]:
    """A function of its own for each item: markers are kept on functions."""

    def test(chaos: Callable[[], object]) -> None:
        chaos()

    return test


def _matches(root: Path, text: str) -> list[Path]:
    found = sorted(
        file
        for name in glob.glob(text, root_dir=root, recursive=True)
        if (file := (root / name).resolve()).is_file()
        and file.suffix == ".py"
        and not file.name.startswith("_")
        and file.name != "conftest.py"
    )
    if not found:
        raise pytest.UsageError(f"--chaos-scenarios: no file matches {text!r} in {root}")
    return found
