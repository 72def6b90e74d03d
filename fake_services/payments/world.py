"""The account's state: what there is, under which ids, and how it is found again."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import msgspec

from chaoskit.model.effects import Effect
from fake_services.payments.forms import Form
from fake_services.payments.objects import Charge, Customer, PaymentIntent, Refund, Thing
from fake_services.payments.orders import ConfirmOrder, Payment

T = TypeVar("T", bound=Thing)

_PREFIXES = {
    "charge": "ch_",
    "payment_intent": "pi_",
    "refund": "re_",
    "customer": "cus_",
    "request": "req_",
    "secret": "",
}


@dataclass(frozen=True, slots=True)
class Draft:
    """What an intent was created with: the money to take, and the caller's own words for it."""

    payment: Payment
    form: Form

    def confirmed(self, order: ConfirmOrder, form: Form) -> Draft:
        """The draft as the parameters of its confirmation complete it."""
        payment = replace(
            self.payment,
            pays_with=order.pays_with or self.payment.pays_with,
            receipt_email=order.receipt_email or self.payment.receipt_email,
        )
        return Draft(payment, {**self.form, **form})


class Clock:
    """Counts requests: ``request`` is the one that is being carried out."""

    def __init__(self) -> None:
        self.request = 0


class Shelf(Generic[T]):
    """The things of one sort, in the order of their creation; nothing is ever taken away.

    Each is marked with the request that put it there, counted by ``clock``, so that a look-up that
    lags can see them as they were.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._things: dict[str, T] = {}
        self._older: dict[str, list[tuple[int, T]]] = {}
        self._put_at: list[int] = []
        self._ids: list[str] = []
        self._positions: dict[str, int] = {}
        self._by_metadata: defaultdict[tuple[str, str], list[int]] = defaultdict(list)

    def put(self, thing: T) -> T:
        """Add ``thing``, or put it in the place of its former state. Metadata never changes."""
        if thing.id not in self._positions:
            position = self._positions[thing.id] = len(self._ids)
            self._ids.append(thing.id)
            self._put_at.append(self._clock.request)
            for name, value in thing.metadata.items():
                self._by_metadata[name, value.casefold()].append(position)
        else:
            former = self._things[thing.id]
            self._older.setdefault(thing.id, []).append((self._clock.request, former))
        self._things[thing.id] = thing
        return thing

    def get(self, ref: str | None) -> T | None:
        """The thing with the id ``ref``."""
        return self._things.get(ref) if ref is not None else None

    def position(self, ref: str) -> int | None:
        """How many things are older than the one with the id ``ref``."""
        return self._positions.get(ref)

    def positions_with(self, name: str, value: str) -> Sequence[int]:
        """Ascending positions of what has this metadata, upper and lower case being the same."""
        return self._by_metadata.get((name, value.casefold()), ())

    def newest_first(self, positions: Sequence[int], horizon: int | None = None) -> Iterator[T]:
        """The things at these ascending positions, the last one first, as of a request."""
        return (self._as_of(self._ids[position], horizon) for position in reversed(positions))

    def oldest_first(self, positions: Sequence[int], horizon: int | None = None) -> Iterator[T]:
        """The things at these ascending positions, as of a request."""
        return (self._as_of(self._ids[position], horizon) for position in positions)

    def known(self, horizon: int | None) -> int:
        """How many things there were after the ``horizon``-th request; None: now."""
        return len(self) if horizon is None else bisect_right(self._put_at, horizon)

    def _as_of(self, ref: str, horizon: int | None) -> T:
        if horizon is not None:
            for replaced_at, former in self._older.get(ref, ()):
                if replaced_at > horizon:
                    return former
        return self._things[ref]

    def __len__(self) -> int:
        return len(self._ids)


class World:
    """Everything that the account knows; ``clock`` says on which request it changes.

    ``drafts`` are by intent, ``booked`` holds the effect of each charge by the charge's id: what
    its caller had asked for.
    """

    def __init__(self, seed: int) -> None:
        self.clock = Clock()
        self.charges = Shelf[Charge](self.clock)
        self.intents = Shelf[PaymentIntent](self.clock)
        self.refunds = Shelf[Refund](self.clock)
        self.customers = Shelf[Customer](self.clock)
        self.drafts: dict[str, Draft] = {}
        self.booked: dict[str, Effect] = {}
        self._seed = seed
        self._counts: Counter[str] = Counter()

    def new_id(self, sort: str) -> str:
        """The next id of a sort (``charge``), made from the seed and the count of its sort."""
        self._counts[sort] += 1
        text = f"{self._seed}|{sort}|{self._counts[sort]}"
        return _PREFIXES[sort] + hashlib.sha256(text.encode()).hexdigest()[:24]

    def book_again(self, effect: Effect) -> Effect:
        """Let the thing that ``effect`` made exist once more, under an id of its own.

        Nothing else of the state knows of the second one: this is a service at fault.
        """
        ref = self.new_id(effect.kind)
        if (charge := self.charges.get(effect.ref)) is not None:
            self.charges.put(msgspec.structs.replace(charge, id=ref))
        if (refund := self.refunds.get(effect.ref)) is not None:
            self.refunds.put(msgspec.structs.replace(refund, id=ref))
        if (customer := self.customers.get(effect.ref)) is not None:
            self.customers.put(msgspec.structs.replace(customer, id=ref))
        again = msgspec.structs.replace(effect, ref=ref)
        if effect.kind == "charge":
            self.booked[ref] = again
        return again
