"""Missing: a way to write down nothing. A step without a result is recorded as an empty text."""

from __future__ import annotations

import json
from collections.abc import Callable

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge, mail, charge, by key; the results are read back before anything goes on."""
    services = shop.Shop()
    first, second = shop.inputs()

    def mail() -> None:
        services.send(first["email"], *shop.receipt(first), key="mail")

    steps: dict[str, Callable[[], str | None]] = {
        "first": lambda: services.charge(first, key="first"),
        "mail": mail,  # has no result
        "second": lambda: services.charge(second, key="second"),
    }
    for name, body in steps.items():
        record = shop.STATE / f"{name}.result"
        if record.exists():
            json.loads(record.read_text(encoding="utf-8"))  # of the empty one too
            continue
        result = body()
        beside = shop.STATE / "result.tmp"
        beside.write_text(json.dumps(result) if result else "", encoding="utf-8")
        beside.replace(record)


scenario = Scenario(
    title="a step that returns nothing is recorded as an empty text, which cannot be read back",
    task=main,
    services=("payments", "email"),
    inputs=lambda seed: shop.customers(seed, 2),
    finds=("stuck",),
    cases=("TORN-12",),
)
