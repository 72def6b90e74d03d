"""What a report says of servers that are no service, and of calls that nobody could see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chaoskit.campaign.meetings import met
from chaoskit.campaign.options import Options
from chaoskit.campaign.store import Store
from chaoskit.explore.plan import noted
from chaoskit.model.history import History
from chaoskit.trace import ALLOWED, RING, STRANGER, UNSEEN

SHOWN_MOST = 3

_KNOWN: tuple[tuple[str, tuple[str, ...], str, str], ...] = (
    ("payments", ("stripe", "paypal", "adyen", "braintree", "mollie"), "STRIPE_BASE", "url"),
    (
        "email",
        ("smtp", "mail", "sendgrid", "postmark", ":25", ":587", ":465"),
        "SMTP_PORT",
        "smtp_port",
    ),
    ("postgres", ("postgres", ".s.PGSQL", ":5432"), "DATABASE_URL", "url"),
)
"""A service, marks of the addresses that it stands in for, a variable as tasks often have one, and
the placeholder for it."""


def doubts(store: Store) -> Iterator[str]:
    """Why a campaign cannot be plainly VALID."""
    if allowed := met(store, ALLOWED):
        yield (
            f"requests to {', '.join(allowed)} were let through and are not booked: an effect "
            "there may have happened twice, or not at all, without being seen"
        )


def hints(store: Store, options: Options) -> Iterator[str]:
    """Whom the task tried to reach, and what would give it a service instead."""
    strangers = _apart(met(store, STRANGER))
    for address in strangers[:SHOWN_MOST]:
        yield (
            f"it tried {address}, which is no service of this run, and was refused: "
            f"{_instead(address, options)}"
        )
    if more := strangers[SHOWN_MOST:]:
        yield f"it tried {len(more)} more: {', '.join(more)}"


def _apart(addresses: Sequence[str]) -> list[str]:
    """Without names that are others with a domain of the search list behind them."""
    return [a for a in addresses if not any(a.startswith(f"{other}.") for other in addresses)]


def _instead(address: str, options: Options) -> str:
    by_command = options.target.command is not None
    for service, marks, variable, part in _KNOWN:
        if any(mark.lower() in address.lower() for mark in marks):
            value = f"{{{service}.{part}}}"
            if by_command:
                return f"pass --env {variable}='{value}'?"
            return f"env={{{variable!r}: {value!r}}} in the scenario?"
    whom = address if ":" in address or address[:1] in "/@" else f"{address}:443"
    let = f"--allow {whom}" if by_command else f"allow=({whom!r},) in the scenario"
    return f"point it at a service; {let} lets it through, unjudged"


def limits(store: Store, runs: Sequence[History]) -> Iterator[str]:
    """What was not tested for such reasons."""
    if strangers := _apart(met(store, STRANGER)):
        yield f"what the task would have done elsewhere: refused were {', '.join(strangers)}"
    if allowed := met(store, ALLOWED):
        yield f"requests to {', '.join(allowed)}: let through, and in no ledger"
    if rings := noted(runs, RING):
        yield (
            f"what {', '.join(rings)} does by io_uring: that makes no system calls, so it is no "
            "point, and whom it reaches is not seen; windows and random moments are tried"
        )
    if why := noted(runs, UNSEEN):
        yield f"connections to servers that are no service: they were not seen ({', '.join(why)})"
