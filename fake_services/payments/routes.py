"""Which method and path is which operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Deed: TypeAlias = Literal["order", "retrieve", "list", "search", "balance", "unknown"]


@dataclass(frozen=True, slots=True)
class Route:
    """Where a request belongs. ``target`` is the id in its path; ``url`` the path of the sort."""

    operation: str
    deed: Deed
    target: str = ""
    url: str = ""


UNKNOWN = Route("unknown", "unknown")

_SORTS = {
    "charges": "charge",
    "payment_intents": "payment_intent",
    "refunds": "refund",
    "customers": "customer",
}
_SEARCHABLE = ("charges", "payment_intents", "customers")

_FIXED: Mapping[tuple[str, str], Route] = {
    **{("POST", f"/v1/{p}"): Route(s, "order", url=f"/v1/{p}") for p, s in _SORTS.items()},
    **{("GET", f"/v1/{p}"): Route(f"{s}.list", "list", url=f"/v1/{p}") for p, s in _SORTS.items()},
    **{
        ("GET", f"/v1/{p}/search"): Route(f"{_SORTS[p]}.search", "search", url=f"/v1/{p}")
        for p in _SEARCHABLE
    },
    ("GET", "/v1/balance"): Route("balance.retrieve", "balance"),
}

OPERATIONS: tuple[str, ...] = (
    *(route.operation for route in _FIXED.values()),
    "confirm",
    *(f"{sort}.retrieve" for sort in _SORTS.values()),
    UNKNOWN.operation,
)


def find_route(method: str, path: str) -> Route:
    """The route of a request; `UNKNOWN` where Stripe (or this subset of it) has none."""
    fixed = _FIXED.get((method, path))
    if fixed is not None:
        return fixed
    match method, path.split("/"):
        case "GET", ["", "v1", ("charges" | "payment_intents" | "refunds" | "customers") as p, ref]:
            if ref:
                return Route(f"{_SORTS[p]}.retrieve", "retrieve", ref, f"/v1/{p}")
        case "POST", ["", "v1", "payment_intents", ref, "confirm"] if ref:
            return Route("confirm", "order", ref, "/v1/payment_intents")
    return UNKNOWN
