"""Fake services by name, through the ``chaoskit.services`` entry points; chaoskit imports none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import entry_points

from chaoskit.model.errors import UsageError, unknown_name
from chaoskit.model.hosting import Service

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


def create_services(names: Sequence[str]) -> list[Service]:
    """One new service per name.

    Raises:
        UsageError: a name is unknown or given twice, or its package cannot be imported, or two
            of them are the same service with different backends.
    """
    if len(set(names)) != len(names):
        raise UsageError(f"a service is named twice: {', '.join(names)}")
    points = {point.name: point for point in entry_points(group=GROUP)}
    services: list[Service] = []
    for name in names:
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
