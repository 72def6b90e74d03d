"""A commit whose acknowledgement is lost is taken for one that did not happen, and repeated.

The books themselves say how far it is, so a kill does no harm. What is missing is a look, after a
connection was lost, at what the server has.
"""

from __future__ import annotations

import _shop as shop
from postgres._sales import TABLES, lost, sell, sold

from chaoskit import Scenario


def main() -> None:
    """Book every sale; begin again what was interrupted."""
    books = shop.postgres()
    done = sold(books)
    for number, customer in enumerate(shop.inputs(), 1):
        if number <= done:
            continue
        try:
            sell(books, number, customer)
        except lost():
            books = shop.postgres()
            sell(books, number, customer)  # wrong: it may be there


scenario = Scenario(
    title="a lost acknowledgement of a commit is taken for a commit that failed",
    task=main,
    services=("postgres",),
    inputs=lambda seed: shop.customers(seed, 3),
    tables=TABLES,
    schedules=("lose-reply@postgres.commit#2",),
    finds=("duplicate_effect",),
)
