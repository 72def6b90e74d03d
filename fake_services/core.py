"""What an HTTP service is made of: a host that talks, and a small pure core that decides.

A core never does I/O and never looks at a clock; the host hands it each request with the time.
To add a service of your own, write a core and return ``HttpService(core)`` from a factory in the
``chaoskit.services`` entry-point group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import msgspec

from chaoskit.model.effects import Effect


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A whole request. Header names are lower case; ``path`` is decoded and has no query.

    ``early``: it was sent before the one ahead of it on its connection was answered.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    early: bool = False


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A whole answer; the host adds ``Content-Length``."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request as the core understands it, before anything has changed.

    ``wants`` is the effect that it asks for; None where it only looks, or is so wrong that it can
    only be refused.
    """

    operation: str
    key: str | None = None
    wants: Effect | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a call: the answer, the new effects, and whether an old answer was repeated."""

    reply: HttpReply
    effects: Sequence[Effect] = ()
    deduped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What the host knows at the moment of a call.

    ``now_s`` is the service's clock in seconds since the epoch; ``in_flight`` says that another
    request with the same key has not been answered yet; ``forget_keys`` and ``apply_twice`` are
    behaviours that were asked for. It is the ``request``-th request since the reset. What the last
    ``lag`` requests before it applied is not to be found by a search, a list or a look-up; reading
    one object by its id never lags.
    """

    now_s: float
    in_flight: bool = False
    forget_keys: bool = False
    apply_twice: bool = False
    request: int = 0
    lag: int = 0

    @property
    def horizon(self) -> int | None:
        """The last request whose effects are found by a look-up; None: nothing lags."""
        return self.request - 1 - self.lag if self.lag else None


class HttpCore(Protocol):
    """The rules and the state of one HTTP service."""

    name: str
    operations: Sequence[str]

    def reset(self, seed: int) -> None:
        """An empty world; ids are made from ``seed``, so that equal runs get equal ids."""

    def understand(self, request: HttpRequest) -> Call:
        """What the request asks for. Changes nothing; raises nothing, whatever the bytes."""

    def apply(self, request: HttpRequest, call: Call, circumstances: Circumstances) -> Outcome:
        """Do it."""


@runtime_checkable
class Worded(Protocol):
    """What a core can do besides: say in its service's own form why a request is refused."""

    def refused(self, status: int, message: str) -> HttpReply:
        """The answer to a request that the service does not even look at."""


def json_reply(status: int, value: object, headers: Mapping[str, str] | None = None) -> HttpReply:
    """A JSON answer."""
    return HttpReply(
        status,
        msgspec.json.encode(value),
        {"content-type": "application/json", **(headers or {})},
    )
