"""What a person can do to running services: behaviours on and off, clocks on, landings, a reset.

Everything is checked before anything is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from chaoskit.model.behaviours import Behaviour, parse_behaviour
from chaoskit.model.errors import UsageError, unknown_name
from chaoskit.model.hosting import Clocked, Misbehaving, Postponing, Service
from fake_services.page.chronicle import Chronicle
from fake_services.page.forms import BehaviourState
from fake_services.page.views import behaviour
from fake_services.shown import Repertoire, repertoire_of

BEHAVIOURS_MOST = 50
"""So many behaviours are listed; the oldest that is off gives way to a new one."""

CLOCK_MOST_S = 10 * 366 * 24 * 60 * 60
"""A clock is moved on by up to ten years."""


class Controls:
    """See the module.

    Args:
        services: those that run.
        chronicle: is cleared by a reset, and told of each change.
        behaviours: those that are switched on from the start.
        seed: that of the services' ids.
    """

    def __init__(
        self,
        services: Sequence[Service],
        chronicle: Chronicle,
        behaviours: Sequence[Behaviour],
        seed: int,
    ) -> None:
        self._services = services
        self._chronicle = chronicle
        self._seed = seed
        self._switches: dict[Behaviour, bool] = dict.fromkeys(behaviours, True)
        self._moved_s = {one.name: 0.0 for one in services if isinstance(one, Clocked)}

    def behaviours(self) -> list[BehaviourState]:
        """Those that were ever switched on, the oldest first."""
        counts = {
            found.service: self._chronicle.asked_for(found.service)
            for found in map(repertoire_of, self._services)
            if found is not None
        }
        return [
            behaviour(one, counts.get(one.service, {}), on=on) for one, on in self._switches.items()
        ]

    def switch(self, text: str, *, on: bool) -> None:
        """Switch a behaviour on or off. Ordinals count on, the world stays.

        Raises:
            UsageError: it is no behaviour, no running service has it, or too many are on.
        """
        one = parse_behaviour(text)
        service = self._whose(one)
        if self._switches.get(one) is on:
            return
        if one not in self._switches:
            self._make_room()
        self._switches[one] = on
        service.behave(self._on())
        self._chronicle.changed()

    def forget(self, text: str) -> None:
        """Switch a behaviour off, and list it no more.

        Raises:
            UsageError: it is not listed.
        """
        one = parse_behaviour(text)
        if one not in self._switches:
            raise unknown_name("behaviour in the list", text, map(str, self._switches))
        self.switch(text, on=False)
        del self._switches[one]
        self._chronicle.changed()

    def _whose(self, one: Behaviour) -> Misbehaving:
        known: dict[str, tuple[Misbehaving, Repertoire]] = {}
        for service in self._services:
            found = repertoire_of(service)
            if found is not None and isinstance(service, Misbehaving):
                known[found.service] = service, found
        if one.service not in known:
            raise unknown_name("service with behaviours", one.service, known)
        mine, can = known[one.service]
        if one.kind not in can.kinds:
            raise unknown_name(f"behaviour of {one.service}", one.kind, can.kinds)
        if not any(map(one.covers, can.operations)):
            raise unknown_name(f"operation of {one.service}", one.operation, can.operations)
        return mine

    def _make_room(self) -> None:
        if len(self._switches) < BEHAVIOURS_MOST:
            return
        oldest_off = next((one for one, on in self._switches.items() if not on), None)
        if oldest_off is None:
            raise UsageError(f"{BEHAVIOURS_MOST} behaviours are on; switch one off first")
        del self._switches[oldest_off]

    def _on(self) -> list[Behaviour]:
        return [one for one, on in self._switches.items() if on]

    def clock_s(self, service: str) -> float | None:
        """How far the clock of a service was moved on since the reset; None: it has none."""
        return self._moved_s.get(service)

    def move_clocks(self, seconds: float, service: str = "") -> None:
        """Move the clock of one service on, or (empty) of all that have one.

        Raises:
            UsageError: no such clock, or no time that a clock can be moved on by.
        """
        if not (isfinite(seconds) and 0 < seconds <= CLOCK_MOST_S):
            raise UsageError(
                f"a clock is moved on by more than 0 and up to {CLOCK_MOST_S} seconds, "
                f"not by {seconds:g}"
            )
        if service and service not in self._moved_s:
            raise unknown_name("service with a clock", service, self._moved_s)
        for one in self._services:
            if isinstance(one, Clocked) and service in {"", one.name}:
                one.shift_clock(seconds)
                self._moved_s[one.name] += seconds
        self._chronicle.changed()

    def land(self) -> None:
        """Carry out every request that was cut off and waits."""
        for one in self._services:
            if isinstance(one, Postponing):
                one.end()
        self._chronicle.changed()

    def reset(self) -> None:
        """Every service as after its start, with the behaviours that are on. Ids begin anew."""
        for one in self._services:
            one.reset(self._seed, self._on())
        self._moved_s = dict.fromkeys(self._moved_s, 0.0)
        self._chronicle.clear()
