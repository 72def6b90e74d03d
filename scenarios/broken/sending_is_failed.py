"""Missing: a question. What was under way at a kill is called failed, and never tried again."""

from __future__ import annotations

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Mail by key: sending, sent; a row that is still sending belongs to a dead process."""
    services = shop.Shop()
    rows = shop.Checkpoint("rows.json")
    for row, phase in list(rows.values.items()):
        if phase == "sending":
            rows.save(**{row: "failed"})  # perhaps it is; nobody is told
    for customer in shop.inputs():
        to = customer["email"]
        if to not in rows.values:
            rows.save(**{to: "sending"})
            services.send(to, *shop.receipt(customer), key=to)
            rows.save(**{to: "sent"})
    services.send("owner@example.com", "Receipts sent", "all of them\n", key="all-sent")


scenario = Scenario(
    title="a mail that was under way at a kill is called failed and never tried again",
    task=main,
    services=("email",),
    inputs=lambda seed: shop.customers(seed, 3),
    finds=("lost_effect",),
    cases=("CTRL-6",),
)
