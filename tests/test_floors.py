"""The floors of the design: imports only downwards, siblings apart, light where it must be."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

FLOORS = {
    "model": 0,
    "probe": 1,
    "runtime": 2,
    "trace": 2,
    "checkers": 2,
    "trial": 3,
    "explore": 4,
    "campaign": 5,
    "reporting": 6,
    "cli": 7,
    "pytest_plugin": 7,
    "strategies": 7,
}
"""The table of floors in ARCHITECTURE.md."""

HEAVY = {
    "psutil": {"trial"},
    "jinja2": {"reporting"},
    "multiprocess": {"campaign"},
    "rich": {"cli", "reporting"},
    "click": {"cli"},
    "pytest": {"pytest_plugin"},
    "faker": set(),
    "hypothesis": {"strategies"},
}
"""Which rooms of chaoskit may import a heavy package."""

STANDARD_ONLY = {"probe", "runtime", "trace"}

EXTRAS = {"psycopg": {"store_postgres.py", "store_postgres_session.py", "markers_postgres.py"}}
"""Packages that are installed on request, and the only files there that may import them."""


def _files(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def _imports(file: Path) -> Iterator[str]:
    """Every module that ``file`` imports, inside functions too."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _room(file: Path) -> str:
    return file.relative_to(ROOT / "chaoskit").parts[0].removesuffix(".py")


CHAOSKIT = [
    f
    for f in _files("chaoskit")
    if f.parent != ROOT / "chaoskit" or f.stem in {"pytest_plugin", "strategies"}
]


@pytest.mark.parametrize("file", CHAOSKIT, ids=lambda f: str(f.relative_to(ROOT)))
def test_imports_go_downwards_only(file: Path) -> None:
    """A module imports its own room and lower floors, never a sibling or a higher floor."""
    room = _room(file)
    assert room in FLOORS, f"{file}: a room that the design does not know"
    for name in _imports(file):
        parts = name.split(".")
        if parts[0] == "chaoskit" and len(parts) > 1 and parts[1] in FLOORS and parts[1] != room:
            assert FLOORS[parts[1]] < FLOORS[room], f"{file} imports {name}"
        assert parts[0] not in {"fake_services", "scenarios", "tests"}, f"{file} imports {name}"


@pytest.mark.parametrize("file", CHAOSKIT, ids=lambda f: str(f.relative_to(ROOT)))
def test_heavy_packages_stay_in_their_rooms(file: Path) -> None:
    """psutil, multiprocess, rich and the like are imported only where the design puts them."""
    room = _room(file)
    for name in _imports(file):
        package = name.split(".")[0]
        if package in HEAVY:
            assert room in HEAVY[package], f"{file} imports {package}"
        if package in EXTRAS:
            assert file.name in EXTRAS[package], f"{file} imports {package}"
        elif room in STANDARD_ONLY and package != "chaoskit":
            assert package in sys.stdlib_module_names, f"{file} imports {package}"


@pytest.mark.parametrize("file", _files("fake_services"), ids=lambda f: str(f.relative_to(ROOT)))
def test_fake_services_know_the_model_only(file: Path) -> None:
    """fake_services imports nothing of chaoskit but its model."""
    for name in _imports(file):
        parts = name.split(".")
        if parts[0] == "chaoskit":
            assert parts[1] == "model", f"{file} imports {name}"


@pytest.mark.parametrize("file", _files("scenarios"), ids=lambda f: str(f.relative_to(ROOT)))
def test_scenarios_use_public_names(file: Path) -> None:
    """A scenario imports what any user could: chaoskit, chaoskit.probe, chaoskit.runtime."""
    names = ("Change", "Scenario", "probe", "runtime")
    allowed = {"chaoskit", *(f"chaoskit.{name}" for name in names)}
    for name in _imports(file):
        if name.startswith("chaoskit"):
            public = name in allowed or name.startswith("chaoskit.runtime.")
            assert public and name.count(".") <= 2, f"{file} imports {name}"
        assert not name.startswith(("fake_services", "tests"))


@pytest.mark.parametrize(
    "module", ["chaoskit.probe", "chaoskit.runtime", "chaoskit.trial.launcher"]
)
def test_what_loads_in_every_attempt_is_light(module: str) -> None:
    """What runs inside a task's process loads no third-party package and no asyncio."""
    code = (
        f"import sys; before = set(sys.modules); import {module}; "
        "print(*sorted({m.split('.')[0] for m in set(sys.modules) - before}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    loaded = set(done.stdout.split())
    assert loaded - set(sys.stdlib_module_names) <= {"chaoskit"}
    assert "asyncio" not in loaded


def test_the_plugin_costs_nothing_until_it_is_used() -> None:
    """Loading the pytest plugin imports nothing of chaoskit but the plugin itself."""
    code = (
        "import pytest, sys; before = set(sys.modules); import chaoskit.pytest_plugin; "
        "print(*sorted(m for m in set(sys.modules) - before if not m.startswith('_')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert set(done.stdout.split()) <= {"chaoskit", "chaoskit.pytest_plugin"}


ELSEWHERE = """
import asyncio, ctypes, os, signal, sqlite3, subprocess, sys
import click, msgspec, multiprocess.connection, psutil, rich.console, rich.progress, rich.table
whole = ctypes.CDLL
def library(name, *rest, **more):
    if name is None:
        raise TypeError("there is no such handle here")
    return whole(name, *rest, **more)
ctypes.CDLL = library
for name in ("SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU"):
    delattr(signal, name)
sys.platform = "win32"
from importlib import import_module
from chaoskit.cli.commands import _COMMANDS
import chaoskit.trial.launcher
for module, _ in _COMMANDS.values():
    import_module(module)
"""
"""A process that lacks what Windows lacks of what the tracer needs."""


def test_nothing_crashes_on_import_where_no_task_can_be_traced() -> None:
    """Every command, and the launcher, can be imported without ptrace and without job control."""
    done = subprocess.run([sys.executable, "-c", ELSEWHERE], capture_output=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr.decode()


SOURCES = [*_files("chaoskit"), *_files("fake_services")]


@pytest.mark.parametrize("file", SOURCES, ids=lambda f: str(f.relative_to(ROOT)))
def test_a_file_holds_one_idea_and_a_function_fits_on_a_screen(file: Path) -> None:
    """No file is longer than 500 lines, no function longer than 70, and none waits by sleeping."""
    text = file.read_text(encoding="utf-8")
    assert text.count("\n") <= 500
    assert "time.sleep(" not in text
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 70, f"{file}: {node.name}"
