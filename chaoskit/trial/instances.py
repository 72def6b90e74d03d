"""A service under another name: what it tells the trial, and what it is told, go by that name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from zlib import crc32

import msgspec

from chaoskit.model.behaviours import Behaviour
from chaoskit.model.effects import Effect
from chaoskit.model.hosting import (
    Address,
    Misbehaving,
    Observer,
    RequestInfo,
    Service,
    ServiceSettings,
)
from chaoskit.model.instances import Instance


def named(service: Service, instance: Instance) -> Service:
    """``service`` under the name of ``instance``; it can do besides what ``service`` can do.

    Its variables are ``CHAOSKIT_NAME_URL`` and so on, one for each placeholder. Its ids are others
    than those of another instance.
    """
    besides = {
        name: property(attrgetter(f"_service.{name}"))
        for name in dir(service)
        if not name.startswith("_") and name != "name" and not hasattr(_Named, name)
    }
    if isinstance(service, Misbehaving):
        besides["behave"] = property(attrgetter("_behave"))
    made: Service = type("Named", (_Named,), besides)(service, instance)
    return made


class _Named:
    """Implements `chaoskit.model.hosting.Service` by another one."""

    def __init__(self, service: Service, instance: Instance) -> None:
        self.name = instance.name
        self._kind = instance.kind
        self._service = service

    async def start(self, observer: Observer, settings: ServiceSettings) -> Address:
        address = await self._service.start(_Renaming(observer, self.name), settings)
        environment = {
            f"CHAOSKIT_{self.name}_{part}".upper(): value
            for part, value in address.placeholders.items()
        }
        return replace(address, environment=environment)

    def reset(self, seed: int, behaviours: Sequence[Behaviour]) -> None:
        self._service.reset(seed + crc32(self.name.encode()), self._own(behaviours))

    def _behave(self, behaviours: Sequence[Behaviour]) -> None:
        assert isinstance(self._service, Misbehaving), "see named()"
        self._service.behave(self._own(behaviours))

    def _own(self, behaviours: Sequence[Behaviour]) -> list[Behaviour]:
        return [replace(b, service=self._kind) for b in behaviours if b.service == self.name]

    def collect(self) -> Sequence[Effect]:
        return _renamed(self._service.collect(), self.name)

    def ledger(self) -> Sequence[Effect]:
        return _renamed(self._service.ledger(), self.name)


class _Renaming:
    """Implements `chaoskit.model.hosting.Observer`: what it hears goes on under another name."""

    def __init__(self, observer: Observer, name: str) -> None:
        self._observer = observer
        self._name = name
        self.answering = observer.answering
        self.answered = observer.answered

    def received(self, request: RequestInfo) -> int | None:
        name, later, wants = self._name, request.later, request.wants
        return self._observer.received(
            replace(
                request,
                service=name,
                wants=None if wants is None else _renamed([wants], name)[0],
                later=None if later is None else lambda: _renamed(later(), name),
            )
        )

    def applied(self, number: int, effects: Sequence[Effect]) -> bool:
        return self._observer.applied(number, _renamed(effects, self._name))

    def landed(self, number: int, effects: Sequence[Effect]) -> None:
        self._observer.landed(number, _renamed(effects, self._name))


def _renamed(effects: Sequence[Effect], name: str) -> list[Effect]:
    return [msgspec.structs.replace(effect, service=name) for effect in effects]
