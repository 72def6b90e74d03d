"""The reference checkpoint runtime: a task that says what it did once resumes where it was killed.

    from chaoskit.runtime import open_run, run_main

    def main() -> None:
        with open_run("run.db", inputs={"month": "2026-08"}) as run:
            if run.finished:
                return
            for customer in customers:
                run.step(
                    f"charge/{customer.id}",
                    lambda effect: pay(customer, key=effect.key),
                    inputs={"amount": customer.amount},
                    look_up=lambda effect: find_charge(effect.key),
                )
            run.finish()

    run_main(main)

Kill it anywhere and start it again: steps that are done give their results back, a step that was
begun is looked up or called with the same key, and one that nobody can tell about stops the run
with its name. Standard library only; usable without the rest of chaoskit.
"""

from __future__ import annotations

from chaoskit.runtime.errors import (
    Cancelled,
    CodeChanged,
    Compensating,
    DamagedStore,
    DuplicateStep,
    Misuse,
    OlderStore,
    OtherInputs,
    OutcomeUnknown,
    OverBudget,
    Owned,
    Poisoned,
    Refused,
    Replanned,
    RetriesExhausted,
    RunError,
    StaleOwner,
    StaleWorld,
    StoreUnavailable,
    ToolChanged,
    UnstorableResult,
)
from chaoskit.runtime.main import run_main
from chaoskit.runtime.observing import file_digest, http_etag, sqlite_row
from chaoskit.runtime.opening import open_run
from chaoskit.runtime.operating import settle
from chaoskit.runtime.planning import Undo
from chaoskit.runtime.records import Order
from chaoskit.runtime.run import Run
from chaoskit.runtime.steps import Effect
from chaoskit.runtime.tools import Tool

__all__ = [
    "Cancelled",
    "CodeChanged",
    "Compensating",
    "DamagedStore",
    "DuplicateStep",
    "Effect",
    "Misuse",
    "OlderStore",
    "Order",
    "OtherInputs",
    "OutcomeUnknown",
    "OverBudget",
    "Owned",
    "Poisoned",
    "Refused",
    "Replanned",
    "RetriesExhausted",
    "Run",
    "RunError",
    "StaleOwner",
    "StaleWorld",
    "StoreUnavailable",
    "Tool",
    "ToolChanged",
    "Undo",
    "UnstorableResult",
    "file_digest",
    "http_etag",
    "open_run",
    "run_main",
    "settle",
    "sqlite_row",
]
