"""Missing: patience, or a key. A cut connection is taken for "not done", and the charge is sent
again at once: the first one is carried out late, besides.

The norm is what the task does while its services behave. The opposite is
`sound/tries_again_by_key.py`.
"""

from __future__ import annotations

from http.client import HTTPException

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Charge; try once more where the answer does not come."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers = shop.inputs()
    for number in range(checkpoint.values.get("done", 0), len(buyers)):
        checkpoint.save(done=number + 1)  # rather none than two, if it is killed
        try:
            services.charge(buyers[number])
        except (OSError, HTTPException):
            services = shop.Shop()
            services.charge(buyers[number])


scenario = Scenario(
    title="a charge whose answer did not come is sent again, and the first one lands late",
    task=main,
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    contract={"payments.charge": "at-most-once"},
    behaviours=("commit-late:1@payments.charge#2",),
    finds=("duplicate_effect",),
    cases=("DUP-3",),
)
