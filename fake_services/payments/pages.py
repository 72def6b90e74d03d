"""Pages of things, newest first (Stripe API reference, Pagination and Search pagination)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

from fake_services.payments.errors import invalid, missing, no_such
from fake_services.payments.forms import Form, form_of, text_of
from fake_services.payments.objects import Thing
from fake_services.payments.orders import whole_number
from fake_services.payments.search import parse_query
from fake_services.payments.world import Shelf

T = TypeVar("T", bound=Thing)

LIMIT_DEFAULT = 10
LIMIT_MAX = 100

_FILTERS = ("customer", "payment_intent", "charge", "email")
_BOUNDS: dict[str, Callable[[int, int], bool]] = {
    "gt": int.__gt__,
    "gte": int.__ge__,
    "lt": int.__lt__,
    "lte": int.__le__,
}
_PAGE = "page_"


def listed(
    shelf: Shelf[T], sort: str, url: str, form: Form, horizon: int | None = None
) -> dict[str, Any]:
    """A page of a list.

    Args:
        shelf: what to list.
        sort: as in error messages: ``charge``.
        url: the list's own path.
        form: ``limit``, ``starting_after``, ``ending_before``, ``created`` and the filters that
            things of this sort have a member for.
        horizon: things are seen as they were after this request; None: as they are.

    Raises:
        RefusedError: a parameter is ill-formed, or a cursor names nothing.
    """
    limit, fits = _limit(form), _filter(form)
    older, newer = _cursor(shelf, sort, form, "starting_after"), None
    if older is None:
        newer = _cursor(shelf, sort, form, "ending_before")
    known = shelf.known(horizon)
    if newer is not None:
        found = _first(shelf.oldest_first(range(newer + 1, known), horizon), fits, limit + 1)
        data = list(reversed(found[:limit]))
    else:
        end = known if older is None else min(known, older)
        found = _first(shelf.newest_first(range(end), horizon), fits, limit + 1)
        data = found[:limit]
    return {"object": "list", "data": data, "has_more": len(found) > limit, "url": url}


def searched(shelf: Shelf[T], url: str, form: Form, horizon: int | None = None) -> dict[str, Any]:
    """A page of a search.

    Without a ``horizon`` what was written just now is found at once, unlike with Stripe, where it
    takes a minute as a rule (Stripe docs, Search, Data freshness); otherwise things are found as
    they were after that request.

    Raises:
        RefusedError: a parameter is missing or ill-formed, or the page is not one of this search.
    """
    text = text_of(form, "query")
    if text is None:
        raise missing("query")
    query = parse_query(text, url.rpartition("/")[2])
    limit, end = _limit(form), min(shelf.known(horizon), _page_end(shelf, form))
    sure = query.decisive_metadata()
    positions: Sequence[int] = range(end)
    if sure is not None:
        positions = [at for at in shelf.positions_with(*sure) if at < end]
    found = _first(shelf.newest_first(positions, horizon), query.matches, limit + 1)
    more = len(found) > limit
    return {
        "object": "search_result",
        "data": found[:limit],
        "has_more": more,
        "next_page": _PAGE + found[limit - 1].id if more else None,
        "url": f"{url}/search",
    }


def _first(things: Iterable[T], fits: Callable[[T], bool], count: int) -> list[T]:
    return list(islice(filter(fits, things), count))


def _limit(form: Form) -> int:
    limit = whole_number(form, "limit")
    if limit is None:
        return LIMIT_DEFAULT
    if limit < 1:
        raise invalid("This value must be greater than or equal to 1.", param="limit")
    if limit > LIMIT_MAX:
        raise invalid(f"This value must be less than or equal to {LIMIT_MAX}.", param="limit")
    return limit


def _cursor(shelf: Shelf[T], sort: str, form: Form, name: str) -> int | None:
    ref = text_of(form, name)
    if ref is None:
        return None
    position = shelf.position(ref)
    if position is None:
        raise no_such(sort, ref, param=name)
    return position


def _page_end(shelf: Shelf[T], form: Form) -> int:
    page = text_of(form, "page")
    if page is None:
        return len(shelf)
    position = shelf.position(page.removeprefix(_PAGE))
    if position is None:
        raise invalid(f"Invalid page: {page}", param="page")
    return position


def _filter(form: Form) -> Callable[[Thing], bool]:
    equal = {name: value for name in _FILTERS if (value := text_of(form, name)) is not None}
    bounds = _created(form)

    def fits(thing: Thing) -> bool:
        return all(getattr(thing, name, None) == value for name, value in equal.items()) and all(
            holds(thing.created, bound) for holds, bound in bounds
        )

    return fits


def _created(form: Form) -> list[tuple[Callable[[int, int], bool], int]]:
    if isinstance(form.get("created"), str):
        exact = whole_number(form, "created")
        return [] if exact is None else [(int.__eq__, exact)]
    given = form_of(form, "created")
    bounds = []
    for name, holds in _BOUNDS.items():
        bound = whole_number(given, name)
        if bound is not None:
            bounds.append((holds, bound))
    return bounds
