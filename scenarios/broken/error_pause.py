"""Missing: the place after a pause. A mail error pauses the mailing, which goes on from the top."""

from __future__ import annotations

import sys

import _shop as shop

from chaoskit import Scenario


def main() -> None:
    """Mail the list by key; after an error, as many as are left, from the first one on."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    buyers, run = shop.inputs(), checkpoint.values.get("pauses", 0)
    sent = checkpoint.values.get("sent", 0)
    for customer in buyers[: len(buyers) - sent] if run else buyers[sent:]:
        try:
            key = f"{run}-{customer['email']}"
            services.send(customer["email"], *shop.receipt(customer), key=key)
        except RuntimeError as failed:
            checkpoint.save(pauses=run + 1)
            sys.exit(f"paused: {failed}")
        sent += 1
        checkpoint.save(sent=sent)
    services.send("owner@example.com", "Mailing finished", "all of them\n", key="finished")


scenario = Scenario(
    title="a mailing that was paused by an error goes on from the top of the list",
    task=main,
    services=("email",),
    inputs=lambda seed: shop.customers(seed, 4),
    schedules=("reject:503@email.send#3",),
    finds=("lost_effect", "silent_restart"),
    cases=("REDO-7",),
)
