"""Missing: an end for a call that was cut short. The history has a call without a result."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def answer(talk: dict[str, str]) -> str:
    """The model; like the real ones it refuses a history with a call that has no result."""
    for call in talk:
        if call.startswith("call-") and call.replace("call", "result") not in talk:
            raise ValueError(f"400: {call} has no result")
    return f"{len(talk)} lines"


def main() -> None:
    """An assistant that charges customers: each call is saved, then done, then its result."""
    services = shop.Shop()
    talk = shop.Checkpoint("talk.json")
    for number, customer in enumerate(shop.inputs()):
        if f"result-{number}" not in talk.values:
            answer(talk.values)
            talk.save(**{f"call-{number}": customer["name"]})
            talk.save(**{f"result-{number}": services.charge(customer, key=f"order-{number}")})


scenario = Scenario(
    title="a history with a call that has no result is refused by the model, at every resume",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    finds=("stuck",),
    cases=("STUCK-8",),
)
