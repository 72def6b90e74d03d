"""The payments service, ready to be started: what the entry point ``payments`` names."""

from __future__ import annotations

from chaoskit.model.hosting import Service
from fake_services.host import HttpService
from fake_services.payments.core import PaymentsCore


def create() -> Service:
    """A service with an empty world, which listens once it is started."""
    return HttpService(PaymentsCore())
