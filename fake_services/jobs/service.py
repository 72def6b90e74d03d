"""The jobs service, ready to be started: what the entry point ``jobs`` names."""

from __future__ import annotations

from chaoskit.model.hosting import Service
from fake_services.host import HttpService
from fake_services.jobs.core import JobsCore


def create() -> Service:
    """A service without jobs, which listens once it is started."""
    return HttpService(JobsCore())
