"""The chronicle: every effect and the latest requests since the reset, in the order seen.

It holds the same effects as the ledgers of the services, and none of their state.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from chaoskit.model.effects import Effect, Fields
from chaoskit.model.hosting import RequestInfo

REQUESTS_KEPT = 10_000
"""So many of the latest requests are kept; of effects, all are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """The ``number``-th effect since the reset, learnt of at ``at_s`` (seconds since the epoch).

    ``request`` is the number of the request that had it, None where a database was asked later.
    ``same_as`` is the first effect with the same service, kind and fields, None where it is new.
    """

    number: int
    at_s: float
    effect: Effect
    request: int | None = None
    same_as: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The ``number``-th request since the reset, and what has come of it so far.

    ``effects`` is how many it had, ``effect`` the number of the first of them (None: it had none).
    ``status`` is None until it is answered; ``delivered`` says whether the answer went out;
    ``landed`` that it was carried out after its sender had been cut off.
    """

    number: int
    at_s: float
    service: str
    operation: str
    key: str | None
    effects: int = 0
    effect: int | None = None
    status: int | None = None
    deduped: bool = False
    delivered: bool = False
    landed: bool = False


class Chronicle:
    """See the module. ``clock`` gives seconds since the epoch.

    ``version`` grows with whatever changes; ``on_change`` is called then, and must return at once.
    ``world`` grows with each reset. ``counts`` has how often each operation of each service was
    asked for, ``same_again`` how many effects are the same as an earlier one.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.version = self.world = 0
        self.on_change: Callable[[], None] = lambda: None
        self._clock = clock
        self._offset = self._last = 0
        self.clear()

    def clear(self) -> None:
        """A new world: nothing was asked, nothing has happened. Requests are numbered anew."""
        self.effects: list[Noted] = []
        self.requests: dict[int, Asked] = {}
        self.counts: Counter[tuple[str, str]] = Counter()
        self.same_again = 0
        self._by_service: defaultdict[str, list[Noted]] = defaultdict(list)
        self._firsts: dict[tuple[str, str, Fields], int] = {}
        self._offset = self._last
        self.world += 1
        self.changed()

    def changed(self) -> None:
        """Something that the page shows is different now."""
        self.version += 1
        self.on_change()

    # What the observer of the services is told. Its numbers go on over resets.

    def asked(self, number: int, request: RequestInfo) -> None:
        """A request is here."""
        self._last = number
        mine = number - self._offset
        self.requests[mine] = Asked(
            number=mine,
            at_s=self._clock(),
            service=request.service,
            operation=request.operation,
            key=request.key,
        )
        self.counts[request.service, request.operation] += 1
        if len(self.requests) > REQUESTS_KEPT:
            del self.requests[next(iter(self.requests))]
        self.changed()

    def happened(self, effects: Iterable[Effect], number: int | None = None) -> None:
        """Effects, of a request or (None) found in a database."""
        mine = None if number is None else number - self._offset
        new = [self._note(effect, mine) for effect in effects]
        if mine in self.requests and new:
            known = self.requests[mine]
            self.requests[mine] = replace(
                known,
                effects=known.effects + len(new),
                effect=known.effect or new[0].number,
            )
        if new:
            self.changed()

    def answered(self, number: int, status: int, *, deduped: bool, delivered: bool) -> None:
        """A request was answered, or (not ``delivered``) its connection cut."""
        self._know(number, status=status, deduped=deduped, delivered=delivered)

    def landed(self, number: int, effects: Sequence[Effect]) -> None:
        """A request whose sender was cut off is carried out only now."""
        self.happened(effects, number)
        self._know(number, landed=True)

    def _know(self, number: int, **facts: object) -> None:
        mine = number - self._offset
        if mine in self.requests:  # it may be of the world before, or too old
            self.requests[mine] = replace(self.requests[mine], **facts)  # type: ignore[arg-type]
            self.changed()

    def _note(self, effect: Effect, request: int | None) -> Noted:
        number = len(self.effects) + 1
        first = self._firsts.setdefault((effect.service, effect.kind, effect.fields), number)
        noted = Noted(
            number=number,
            at_s=self._clock(),
            effect=effect,
            request=request,
            same_as=None if first == number else first,
        )
        self.same_again += noted.same_as is not None
        self.effects.append(noted)
        self._by_service[effect.service].append(noted)
        return noted

    # Looking.

    def of(self, service: str) -> Sequence[Noted]:
        """The effects of one service, or (empty) of all, in order; not to be changed."""
        return self._by_service.get(service, ()) if service else self.effects

    def requests_of(self, service: str) -> Sequence[Asked]:
        """The requests of one service, or (empty) of all, as far as they are kept, in order."""
        return [asked for asked in self.requests.values() if service in {"", asked.service}]

    def asked_for(self, service: str) -> dict[str, int]:
        """How often each operation of a service was asked for."""
        return {name: n for (where, name), n in self.counts.items() if where == service}
