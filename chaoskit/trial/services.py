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
from chaoskit.model.instances import Instance, file_of, parse_instance
from chaoskit.model.scenario import Scenario
from chaoskit.trial.instances import named
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

_TAKEN = ("state", "seed", "inputs", "here")
"""Placeholders that are no service's."""


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


def services_by_name(scenario: Scenario, services: Sequence[Service]) -> dict[str, Service]:
    """The services of a scenario by the names by which behaviours call them: one of a file by its
    own.
    """
    pairs = zip(scenario.service_names, services, strict=True)
    return {one.name if file_of(name) else name: one for name, one in pairs}


def instances_of(names: Sequence[str]) -> list[Instance]:
    """The services of a run, from texts such as ``email`` and ``payments:eu``.

    Raises:
        UsageError: a service is unknown, or a name is not valid, taken or given twice.
    """
    known = service_names()
    instances = [parse_instance(text) for text in names]
    for one in instances:
        if one.kind not in known and not file_of(one.kind):
            raise unknown_service(one.kind, known)
        if one.name != one.kind and one.name in {*known, *_TAKEN}:
            what = "a service" if one.name in known else "a placeholder"
            raise UsageError(
                f"{one.kind}:{one.name}: {one.name} is {what} already; give the instance another "
                f"name, as in {one.kind}:eu"
            )
    if len({one.name.lower() for one in instances}) != len(instances):
        raise UsageError(
            f"a service is named twice: {', '.join(names)}; give each a name of its own, as in "
            f"{instances[0].kind}:eu,{instances[0].kind}:us"
        )
    return instances


def create_services(names: Sequence[str], here: Path = Path()) -> list[Service]:
    """One new service per name; files are found from the folder ``here``.

    Raises:
        UsageError: see `instances_of`; or its package cannot be imported, or its file has no such
            service, or two of them are the same service with different backends.
    """
    points = {point.name: point for point in entry_points(group=GROUP)}
    services: list[Service] = []
    for one in instances_of(names):
        if file_of(one.kind):
            services.append(_from_file(one.kind, here))
            continue
        try:
            service: Service = points[one.kind].load()()
        except ImportError as missing:
            raise UsageError(f"the service {one.kind!r} cannot be loaded: {missing}") from missing
        services.append(service if one.name == one.kind else named(service, one))
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
