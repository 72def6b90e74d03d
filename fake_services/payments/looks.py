"""Requests that only look: one thing by its id, a list, a search, the balance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from fake_services.payments.errors import no_such
from fake_services.payments.forms import Form
from fake_services.payments.objects import Thing
from fake_services.payments.pages import listed, searched
from fake_services.payments.routes import Route
from fake_services.payments.world import Shelf, World


def look(
    world: World, route: Route, form: Form, horizon: int | None = None
) -> Thing | Mapping[str, Any]:
    """The answer to a request that changes nothing.

    With a ``horizon`` lists and searches find things as they were after that request; one thing by
    its id, and the balance, are always as they are now.

    Raises:
        RefusedError: nothing has the id, or a parameter is missing or ill-formed.
    """
    if route.deed == "balance":
        return balance(world)
    shelf = _shelf(world, route.url)
    sort = route.operation.partition(".")[0]
    if route.deed == "list":
        return listed(shelf, sort, route.url, form, horizon)
    if route.deed == "search":
        return searched(shelf, route.url, form, horizon)
    thing: Thing | None = shelf.get(route.target)
    if thing is None:
        raise no_such(sort, route.target, status=404)
    return thing


def balance(world: World) -> Mapping[str, Any]:
    """What was taken and not given back, per currency; all of it available, free of fees."""
    amounts: Counter[str] = Counter()
    for charge in world.charges.oldest_first(range(len(world.charges))):
        amounts[charge.currency] += charge.amount_captured - charge.amount_refunded
    available = [
        {"amount": amount, "currency": currency, "source_types": {"card": amount}}
        for currency, amount in sorted(amounts.items())
    ]
    return {"object": "balance", "available": available, "livemode": False, "pending": []}


def _shelf(world: World, url: str) -> Shelf[Any]:
    match url:
        case "/v1/charges":
            return world.charges
        case "/v1/payment_intents":
            return world.intents
        case "/v1/refunds":
            return world.refunds
    return world.customers
