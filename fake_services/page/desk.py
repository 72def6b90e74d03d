"""The desk: everything that can be asked about the running services, from one place."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence

from chaoskit.model.errors import UsageError, unknown_name
from chaoskit.model.hosting import Postponing, Service
from fake_services.page import views
from fake_services.page.chronicle import Chronicle, Noted
from fake_services.page.controls import Controls
from fake_services.page.forms import (
    Behaves,
    Detail,
    Effects,
    Requests,
    ServiceState,
    State,
    TableRows,
    Tables,
)
from fake_services.page.safe import line
from fake_services.shown import Showing, Shown, Tabular, repertoire_of


class Desk:
    """See the module.

    Args:
        services: those that run.
        chronicle: of what they were asked and did.
        controls: over them.
        environment: the variables by which a task finds each of them.
        clock: seconds since the epoch.

    """

    def __init__(
        self,
        services: Sequence[Service],
        chronicle: Chronicle,
        controls: Controls,
        environment: Mapping[str, Mapping[str, str]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.chronicle = chronicle
        self.controls = controls
        self._troubles: dict[str, str] = {}
        self._services = {one.name: one for one in services}
        self._environment = environment
        self._clock = clock
        self._serving = secrets.token_hex(8)
        self._searched: dict[int, str] = {}
        self._searched_world = 0

    def state(self) -> State:
        """Everything at a glance."""
        chronicle = self.chronicle
        return State(
            version=chronicle.version,
            serving=self._serving,
            now_s=self._clock(),
            effects=len(chronicle.effects),
            same_again=chronicle.same_again,
            requests=sum(chronicle.counts.values()),
            requests_kept=len(chronicle.requests),
            services=[self._service(one) for one in self._services.values()],
            behaviours=self.controls.behaviours(),
        )

    def trouble(self, service: str, words: str) -> None:
        """Say why the books of a service cannot be read just now; empty: they can."""
        if self._troubles.get(service, "") != words:
            self._troubles[service] = words
            self.chronicle.changed()

    def _service(self, service: Service) -> ServiceState:
        found = repertoire_of(service)
        counts = self.chronicle.asked_for(found.service if found is not None else service.name)
        behaves = None
        if found is not None:
            behaves = Behaves(
                service=found.service,
                operations={name: counts.get(name, 0) for name in found.operations},
                kinds=found.kinds,
            )
        return ServiceState(
            name=service.name,
            environment=self._environment.get(service.name, {}),
            effects=len(self.chronicle.of(service.name)),
            requests=sum(counts.values()),
            waiting=service.postponed if isinstance(service, Postponing) else 0,
            clock_s=self.controls.clock_s(service.name),
            behaves=behaves,
            has_tables=isinstance(service, Tabular),
            trouble=line(self._troubles.get(service.name, "")),
        )

    def effects(self, cut: views.Cut) -> Effects:
        """A window of effects.

        Raises:
            UsageError: there is no such service.
        """
        self._check(cut.service)
        return views.effects(self.chronicle.of(cut.service), self._state_of, self._text_of, cut)

    def effect(self, number: int) -> Detail:
        """One effect by its number.

        Raises:
            UsageError: there is none with this number.
        """
        if not 1 <= number <= len(self.chronicle.effects):
            there = len(self.chronicle.effects)
            raise UsageError(f"there is no effect {number}; there are {there}, numbered from 1")
        noted = self.chronicle.effects[number - 1]
        return views.detail(noted, self._shown(noted))

    def requests(self, cut: views.Cut) -> Requests:
        """A window of requests.

        Raises:
            UsageError: there is no such service.
        """
        self._check(cut.service, also=self._asked_as())
        return views.requests(self.chronicle.requests_of(cut.service), cut)

    def tables(self) -> Tables:
        """The tables of the database.

        Raises:
            ScenarioError: it cannot be read just now.
        """
        return Tables([name for one in self._tabular() for name in one.tables()])

    def rows(self, table: str, start: int, limit: int) -> TableRows:
        """Some rows of a table.

        Raises:
            UsageError: there is no such table.
            ScenarioError: it cannot be read just now.
        """
        for one in self._tabular():
            if table in one.tables():
                shown = one.rows(table, start, min(limit, views.WINDOW_MOST))
                return views.table(table, start, shown)
        raise unknown_name("table", table, self.tables().tables)

    def _tabular(self) -> list[Tabular]:
        return [one for one in self._services.values() if isinstance(one, Tabular)]

    def _check(self, service: str, also: Sequence[str] = ()) -> None:
        known = [*self._services, *also]
        if service and service not in known:
            raise unknown_name("service", service, known)

    def _asked_as(self) -> list[str]:
        found = map(repertoire_of, self._services.values())
        return [one.service for one in found if one is not None]

    def _shown(self, noted: Noted) -> Shown | None:
        service = self._services.get(noted.effect.service)
        ref = noted.effect.ref
        return service.show(ref) if ref and isinstance(service, Showing) else None

    def _state_of(self, noted: Noted) -> str:
        shown = self._shown(noted)
        return shown.state if shown is not None else ""

    def _text_of(self, noted: Noted) -> str:
        """What a filter looks at, made once for each effect of this world."""
        if self._searched_world != self.chronicle.world:
            self._searched, self._searched_world = {}, self.chronicle.world
        if noted.number not in self._searched:
            self._searched[noted.number] = views.searched(noted)
        return self._searched[noted.number]
