"""A commit whose acknowledgement is lost is taken for one that happened, and never made.

The counterpart of ``repeats_lost_commit.py``, with the same thing missing: a look at what the
server has, once a connection was lost.
"""

from __future__ import annotations

import _shop as shop
from postgres._sales import TABLES, lost, sell, sold

from chaoskit import Scenario


def main() -> None:
    """Book every sale; go on after what was interrupted."""
    books = shop.postgres()
    done = sold(books)
    for number, customer in enumerate(shop.inputs(), 1):
        if number <= done:
            continue
        try:
            sell(books, number, customer)
        except lost():
            books = shop.postgres()  # wrong: it may not be there


scenario = Scenario(
    title="a lost acknowledgement of a commit is taken for a commit that succeeded",
    task=main,
    services=("postgres",),
    inputs=lambda seed: shop.customers(seed, 3),
    tables=TABLES,
    schedules=("down:1@postgres.commit#2",),
    finds=("lost_effect",),
)
