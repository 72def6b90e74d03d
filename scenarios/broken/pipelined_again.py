"""Missing: the record of a pair. Charges go out in pairs; the keys hide that all go out again."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge two customers at a time, from the first pair on, whatever happened before."""
    owners = shop.inputs()
    for first in range(0, len(owners), 2):
        shop.charge_in_one_go({f"charge-{n}": owners[n] for n in (first, first + 1)})


scenario = Scenario(
    title="charges go out in pairs, and a resume begins with the first pair",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 6),
    finds=("silent_restart",),
    cases=("REDO-2",),
)
