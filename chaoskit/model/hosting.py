"""The protocol between the trial and a fake service: who is told what, and when.

A service calls its `Observer` at the three windows of each request, on the supervisor's one
thread. The observer may kill the task inside such a call; its answer says whether to go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from chaoskit.model.behaviours import Behaviour
from chaoskit.model.effects import Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestInfo:
    """A request as its service understands it.

    ``wants`` is None where nothing would change. ``later`` applies it to the service's world as
    that is when it is called, with nobody there to answer, and returns what it changed: a request
    that was in flight when its sender died. None where the service cannot do that. ``token`` is
    the fencing token that came along. ``early``: it was sent before the one ahead of it on its
    connection was answered. ``sender_lives``: whether its sender is there when it is called, after
    another process of the task was killed.
    """

    service: str
    operation: str
    key: str | None = None
    wants: Effect | None = None
    token: int | None = None
    early: bool = False
    later: Callable[[], Sequence[Effect]] | None = field(default=None, compare=False, repr=False)
    sender_lives: Callable[[], bool] = field(default=lambda: False, compare=False, repr=False)


class Observer(Protocol):
    """What a service tells the trial. Every call returns at once or after a kill."""

    def received(self, request: RequestInfo) -> int | None:
        """The whole request is here. Its number, or None: its sender is dead, do nothing."""

    def applied(self, number: int, effects: Sequence[Effect]) -> bool:
        """The change is made. False: the sender is dead, do not answer."""

    def answering(self, number: int) -> None:
        """The answer goes out with the next call to the system."""

    def answered(self, number: int, status: int, *, deduped: bool, delivered: bool) -> None:
        """The answer is with the kernel, or (not ``delivered``) was lost on purpose."""

    def landed(self, number: int, effects: Sequence[Effect]) -> None:
        """A request that was cut unanswered is carried out only now; see `Postponing`."""


@dataclass(frozen=True, slots=True)
class Address:
    """How a task finds a service: placeholders (``url`` for ``{payments.url}``) and variables.

    ``ports`` are those on which it listens, so that a call that sends there is known by its name.
    """

    placeholders: Mapping[str, str]
    environment: Mapping[str, str]
    ports: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """What a service is started with. ``port`` 0 lets the system choose."""

    folder: Path
    port: int = 0
    options: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class Patient(Protocol):
    """What a service can do besides: wait before it answers, to see what else is sent meanwhile."""

    def delay_replies(self, seconds: float, total_s: float) -> None:
        """Answer every request ``seconds`` late, until that adds up to ``total_s``."""


@runtime_checkable
class Clocked(Protocol):
    """What a service can do besides: it has a clock of its own, by which its keys expire."""

    def shift_clock(self, seconds: float) -> None:
        """Move the clock on, for the rest of the trial: a reset puts it back."""


@runtime_checkable
class Keyed(Protocol):
    """What a service can do besides: it remembers idempotency keys, and forgets them."""

    def keep_keys(self, seconds: float) -> None:
        """Forget each key so long after its first use, by the service's own clock. A reset, and
        going back to a saved world, do not change this.
        """


@runtime_checkable
class Misbehaving(Protocol):
    """What a service can do besides: behave otherwise in the middle of a trial."""

    def behave(self, behaviours: Sequence[Behaviour]) -> None:
        """Misbehave in these ways from now on, and in no other. Ordinals go on, the world stays.

        Raises:
            UsageError: a behaviour names an operation that this service does not have, or a kind
                that it cannot do.
        """


@runtime_checkable
class Postponing(Protocol):
    """What a service can do besides: cut a request unanswered and carry it out later."""

    @property
    def postponed(self) -> int:
        """How many requests are still to be carried out."""

    def end(self) -> None:
        """The task has ended: carry out what is left, in the order in which it came."""


@runtime_checkable
class Restorable(Protocol):
    """What a service can do besides, so that its world can be gone back to.

    The files in the folder of its `ServiceSettings` are saved and put back by the trial.
    """

    def save(self) -> bytes:
        """Everything that the service knows now, but for its files."""

    def restore(self, saved: bytes) -> None:
        """The world as it was when `save` returned ``saved``; the files are there already."""


@runtime_checkable
class Demanding(Protocol):
    """What a service can say besides: that this machine lacks a program that it needs."""

    def missing(self) -> str:
        """What is not there, and how it is installed; empty if nothing is missing."""


class Service(Protocol):
    """A fake service with its own ledger."""

    name: str
    operations: Sequence[str]

    async def start(self, observer: Observer, settings: ServiceSettings) -> Address:
        """Listen on loopback.

        Raises:
            UsageError: the port is taken.
        """

    def reset(self, seed: int, behaviours: Sequence[Behaviour]) -> None:
        """An empty world, as after the first start."""

    async def quiesce(self, timeout_s: float) -> bool:
        """Wait until every connection has ended. False: one is still open after ``timeout_s``."""

    def collect(self) -> Sequence[Effect]:
        """Effects booked since the last call that no request told of (a database's)."""

    def ledger(self) -> Sequence[Effect]:
        """Every effect since the reset, in order."""

    async def stop(self) -> None:
        """Close every socket and file."""
