"""Fake services by name, through the ``chaoskit.services`` entry points; chaoskit imports none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import entry_points

from chaoskit.model.errors import UsageError, unknown_name
from chaoskit.model.hosting import Service
from chaoskit.model.instances import Instance, parse_instance
from chaoskit.trial.instances import named

GROUP = "chaoskit.services"


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


def instances_of(names: Sequence[str]) -> list[Instance]:
    """The services of a run, from texts such as ``email`` and ``payments:eu``.

    Raises:
        UsageError: a service is unknown, or a name is not valid, taken or given twice.
    """
    known = service_names()
    instances = [parse_instance(text) for text in names]
    for one in instances:
        if one.kind not in known:
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


def create_services(names: Sequence[str]) -> list[Service]:
    """One new service per name.

    Raises:
        UsageError: see `instances_of`; or its package cannot be imported, or two of them are the
            same service with different backends.
    """
    points = {point.name: point for point in entry_points(group=GROUP)}
    services: list[Service] = []
    for one in instances_of(names):
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
