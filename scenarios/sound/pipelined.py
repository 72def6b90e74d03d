"""Charges go out in pairs, each pair in one go with keys, and a record for the pair.

The second of a pair is sent before the first is answered, so a kill between them leaves neither
finished. The opposite fault is `broken/pipelined_again.py` (begins again with the first pair).
"""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge two customers at a time, then note that."""
    checkpoint = shop.Checkpoint()
    owners = shop.inputs()
    for first in range(checkpoint.values.get("done", 0), len(owners), 2):
        pair = {f"charge-{n}": owners[n] for n in (first, first + 1)}
        shop.charge_in_one_go(pair)
        checkpoint.save(done=first + 2)


scenario = Scenario(
    title="charges go out in pairs, with a record for each pair",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 6),
    cases=("REDO-2",),
)
