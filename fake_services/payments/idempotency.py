"""Idempotency keys, as Stripe keeps them (Stripe API reference, Idempotent requests).

The first request with a key has its status and body kept once its execution has begun, whatever
came of it. A later one with the same key, endpoint and parameters gets them again; with others it
is an error. Keys are forgotten 24 hours after their first use.
"""

from __future__ import annotations

from dataclasses import dataclass

from fake_services.payments.errors import Refusal, RefusedError, invalid
from fake_services.payments.forms import Form

KEY_CHARS_MAX = 255
KEY_LIFETIME_S = 24 * 60 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A request that was executed under a key, and the answer that it got.

    ``request_id`` is the answer's ``Request-Id``; ``first_used_s`` is in seconds since the epoch.
    """

    path: str
    form: Form
    first_used_s: float
    status: int
    body: bytes
    request_id: str


class KeyBook:
    """The keys of one account."""

    def __init__(self, lifetime_s: float = KEY_LIFETIME_S) -> None:
        self._lifetime_s = lifetime_s
        self._kept: dict[str, Kept] = {}

    def keep_for(self, seconds: float) -> None:
        """Forget each key so long after its first use."""
        self._lifetime_s = seconds

    def look_up(
        self, key: str, path: str, form: Form, *, now_s: float, in_flight: bool
    ) -> Kept | None:
        """What was kept for the same request; None where it is the first one with its key.

        Raises:
            RefusedError: the key is too long, is in use by a request that has not been answered
                yet, or was first used for another request.
        """
        if len(key) > KEY_CHARS_MAX:
            raise invalid(
                f"Idempotency keys can be at most {KEY_CHARS_MAX} characters long; "
                f"this one has {len(key)}."
            )
        if in_flight:
            raise invalid(_in_use(key), code="idempotency_key_in_use", status=409)
        kept = self._kept.get(key)
        if kept is None or now_s - kept.first_used_s >= self._lifetime_s:
            return None
        if kept.path != path:
            raise _reused(
                key, f"for the same endpoint they were first used for ({_two(path, kept)})"
            )
        if kept.form != form:
            raise _reused(key, "with the same parameters they were first used with")
        return kept

    def keep(self, key: str, kept: Kept) -> None:
        """Remember an executed request, in place of an expired one with the same key."""
        self._kept[key] = kept

    def clear(self) -> None:
        """Forget every key."""
        self._kept.clear()


def _two(path: str, kept: Kept) -> str:
    return f"'{path}' vs '{kept.path}'"


def _in_use(key: str) -> str:
    return (
        "There is currently another in-progress request using this Idempotent Key (that probably "
        "means you submitted twice, and the other request is still going through): "
        f"{key}. Please try again later."
    )


def _reused(key: str, rule: str) -> RefusedError:
    message = (
        f"Keys for idempotent requests can only be used {rule}. Try using a key other than "
        f"'{key}' if you meant to execute a different request."
    )
    return RefusedError(Refusal(status=400, kind="idempotency_error", message=message))
