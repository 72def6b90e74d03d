"""Fake services by name, through the ``chaoskit.services`` entry points; chaoskit imports none."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points

from chaoskit.model.errors import UsageError, unknown_name
from chaoskit.model.hosting import Service

GROUP = "chaoskit.services"


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
            raise unknown_name("service", name, points)
        try:
            services.append(points[name].load()())
        except ImportError as missing:
            raise UsageError(f"the service {name!r} cannot be loaded: {missing}") from missing
    for name, service in zip(names, services, strict=True):
        first = next(n for n, s in zip(names, services, strict=True) if s.name == service.name)
        if first != name:
            raise UsageError(f"{first} and {name} are both the service {service.name}: name one")
    return services
