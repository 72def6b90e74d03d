"""Expanding: an id in an answer replaced by the object that it names (Stripe docs, Expanding)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from fake_services.payments.objects import Thing
from fake_services.payments.world import World


def expanded(world: World, answer: object, paths: Iterable[str]) -> object:
    """``answer`` with the members at these dotted paths expanded (``data.customer``).

    A path that leads to no id of a stored object is passed over; so is a customer whom the
    account is only taken to know.
    """
    wanted = [path.split(".") for path in paths]
    if not wanted:
        return answer
    value = msgspec.to_builtins(answer)
    for names in wanted:
        _expand(world, value, names)
    return value


def _expand(world: World, value: Any, names: list[str]) -> None:
    if isinstance(value, list):
        for item in value:
            _expand(world, item, names)
        return
    if not names or not isinstance(value, dict):
        return
    name, *rest = names
    linked = _linked(world, name, value.get(name))
    if linked is not None:
        value[name] = msgspec.to_builtins(linked)
    _expand(world, value.get(name), rest)


def _linked(world: World, name: str, ref: object) -> Thing | None:
    if not isinstance(ref, str):
        return None
    match name:
        case "customer":
            return world.customers.get(ref)
        case "charge" | "latest_charge":
            return world.charges.get(ref)
        case "payment_intent":
            return world.intents.get(ref)
    return None
