"""From a scenario's file to its task: its modules, imported in whatever process asks for them.

Standard library only, as the launcher, which a Python task begins as a fork of.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable

CONTROL = "control "
"""In place of the name of a change: the scenario's control. No change is called so."""

Task = Callable[[], object]


def load_task(file: str, name: str, change: str = "") -> Task:
    """The task of the scenario ``name`` in ``file``; with a ``change``, that one's, or its control.

    Raises:
        TypeError: it has none.
    """
    scenario = getattr(load_module(file), name)
    if change == CONTROL:
        task = scenario.control
    else:
        task = scenario.changes[change].task if change else scenario.task
    if not callable(task):
        raise TypeError(f"{name}.task in {file} is not a function")
    return task  # type: ignore[no-any-return]


def modules_of(file: str) -> dict[str, str]:
    """The loaded modules from the folders that the scenario in ``file`` imports from, by name."""
    folders = tuple(folder + os.sep for folder in _import_folders(file))
    return {
        name: path
        for name, module in sys.modules.items()
        if (path := getattr(module, "__file__", None)) is not None
        and name != "__main__"
        and path.startswith(folders)
        and not _installed(path)
    }


def _installed(path: str) -> bool:
    """Whether a module lies in an environment, which may itself lie below a scenario's folder."""
    return "site-packages" in path or "dist-packages" in path


def load_module(file: str) -> object:
    """The module in ``file``, with its folders first on the path, loaded once per process."""
    name = "chaoskit_scenario_" + os.path.basename(file).removesuffix(".py").replace(".", "_")
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == file:
        return known
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file")
    for folder in _import_folders(file):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _import_folders(file: str) -> list[str]:
    """Where a scenario imports from: its own folder, and the nearest one named ``scenarios``."""
    folder = os.path.dirname(file)
    folders = [folder]
    while folder != os.path.dirname(folder):
        if os.path.basename(folder) == "scenarios":
            folders.append(folder)
            break
        folder = os.path.dirname(folder)
    return folders
