"""Idempotency keys: which were used, for what, and what was answered.

The store knows no rules but age; what a second use of a key means is the service's business.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from fake_services.core import HttpReply


@dataclass(frozen=True, slots=True)
class FirstUse:
    """The first request with a key.

    ``fingerprint`` is equal for two requests that ask for the same; ``used_s`` is the service's
    clock in seconds since the epoch.
    """

    fingerprint: Hashable
    reply: HttpReply
    used_s: float


class KeyStore:
    """First uses by key, each forgotten ``lifetime_s`` seconds after it happened."""

    def __init__(self, lifetime_s: float) -> None:
        self._lifetime_s = lifetime_s
        self._uses: dict[str, FirstUse] = {}

    def keep_for(self, seconds: float) -> None:
        """Forget each key so long after its first use."""
        self._lifetime_s = seconds

    def find(self, key: str, now_s: float) -> FirstUse | None:
        """The first use of ``key``, unless it is unknown or too old at ``now_s``."""
        use = self._uses.get(key)
        if use is not None and now_s - use.used_s >= self._lifetime_s:
            del self._uses[key]
            return None
        return use

    def remember(self, key: str, fingerprint: Hashable, reply: HttpReply, now_s: float) -> None:
        """Keep ``reply`` as the answer to ``key``, from ``now_s`` on."""
        self._uses[key] = FirstUse(fingerprint, reply, now_s)

    def clear(self) -> None:
        """Forget every key."""
        self._uses.clear()
