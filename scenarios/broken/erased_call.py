"""Missing: what may have happened. The repair of a cut history erases the call, and its effect."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def repaired(talk: dict[str, str]) -> dict[str, str]:
    """The history without calls that have no result."""
    calls = [c for c in talk if c.startswith("call-") and c.replace("call", "result") not in talk]
    return {line: text for line, text in talk.items() if line not in calls}


def main() -> None:
    """An assistant that charges customers: each call is saved, then done, then its result."""
    services = shop.Shop()
    talk = shop.Checkpoint("talk.json")
    talk.values = repaired(talk.values)  # now it never was
    for number, customer in enumerate(shop.inputs()):
        if f"call-{number}" not in talk.values:
            talk.save(**{f"call-{number}": customer["name"]})
            talk.save(**{f"result-{number}": services.charge(customer)})


scenario = Scenario(
    title="a call without a result is erased from the history and made again",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    finds=("duplicate_effect",),
    cases=("STUCK-8",),
)
