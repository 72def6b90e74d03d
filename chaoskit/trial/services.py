"""Fake services by name, through the ``chaoskit.services`` entry points, or from a Python file;
chaoskit imports none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast

from chaoskit.model.errors import UsageError, nearest, unknown_name
from chaoskit.model.hosting import Service
from chaoskit.trial.task_modules import load_module

GROUP = "chaoskit.services"

FACTORY = "create"
"""The function that makes a service, where only the file is named."""

_PARTS = ("name", "operations", "start", "reset", "quiesce", "collect", "ledger", "stop")
"""What every `Service` has."""

_MEANT = {
    "stripe": "payments",
    "mail": "email",
    "smtp": "email",
    "pg": "postgres",
    "postgresql": "postgres",
    "sqlite": "database",
}
"""Other names under which people look for the services."""


def unknown_service(name: str, known: Iterable[str]) -> UsageError:
    """A `UsageError` that names the service that is meant, or else the nearest ones.

    Args:
        name: what the user wrote.
        known: every valid name.
    """
    names = set(known)
    meant = _MEANT.get(name.lower())
    return unknown_name("service", name, [meant] if meant in names else names)


def service_names() -> list[str]:
    """Every service that is installed."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def file_of(name: str) -> str:
    """The file of a service that is named as ``FILE.py:NAME`` or ``FILE.py``; empty: no file."""
    file = name.partition(":")[0]
    return file if file.endswith(".py") else ""


def known_as(name: str, service: Service) -> str:
    """The name by which behaviours call a service: that of its file is no part of it."""
    return service.name if file_of(name) else name


def create_services(names: Sequence[str], here: Path = Path()) -> list[Service]:
    """One new service per name; files are found from the folder ``here``.

    Raises:
        UsageError: a name is unknown or given twice, or its package cannot be imported, or its file
            has no such service, or two of them are the same service with different backends.
    """
    if len(set(names)) != len(names):
        raise UsageError(f"a service is named twice: {', '.join(names)}")
    points = {point.name: point for point in entry_points(group=GROUP)}
    services: list[Service] = []
    for name in names:
        if file_of(name):
            services.append(_from_file(name, here))
            continue
        if name not in points:
            raise unknown_service(name, points)
        try:
            services.append(points[name].load()())
        except ImportError as missing:
            raise UsageError(f"the service {name!r} cannot be loaded: {missing}") from missing
    for name, service in zip(names, services, strict=True):
        first = next(n for n, s in zip(names, services, strict=True) if s.name == service.name)
        if first != name:
            raise UsageError(f"{first} and {name} are both the service {service.name}: name one")
    return services


def _from_file(name: str, here: Path) -> Service:
    """What the class or function of a file makes; ``create`` where the name has only the file."""
    file, _, maker = name.partition(":")
    maker = maker or FACTORY
    path = here / file
    if not path.is_file():
        near = ", ".join(nearest(file, (there.name for there in path.parent.glob("*.py"))))
        raise UsageError(f"there is no file {path} with a service; nearest: {near or 'none'}")
    try:
        module = load_module(str(path.resolve()))
    except (Exception, SystemExit) as error:
        raise UsageError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    known = [key for key, value in vars(module).items() if _is_maker(key, value, module)]
    if maker not in known:
        there = ", ".join(known) or "none"
        raise UsageError(f"{path} has no class or function {maker!r}; it has: {there}")
    try:
        made = getattr(module, maker)()
    except Exception as error:
        raise UsageError(
            f"{path}: {maker}() makes no service: {type(error).__name__}: {error}"
        ) from error
    return _checked(made, f"{path}: {maker}()", known)


def _is_maker(name: str, value: object, module: object) -> bool:
    own = getattr(value, "__module__", None) == getattr(module, "__name__", "")
    return callable(value) and own and not name.startswith("_")


def _checked(made: Any, place: str, known: Sequence[str]) -> Service:
    """``made``, which is a service.

    Raises:
        UsageError: it is none; the message says what it lacks.
    """
    lacks = [name for name in _PARTS if not hasattr(made, name)]
    if not lacks:
        return cast("Service", made)
    core = all(hasattr(made, name) for name in ("understand", "apply"))
    fix = (
        "it is a core: return fake_services.host.HttpService(core) from a function, and name that"
        if core
        else f"the file has {', '.join(known)}"
    )
    raise UsageError(f"{place} is no service, it lacks {', '.join(lacks)}; {fix}")
