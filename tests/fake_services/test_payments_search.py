"""Search and lists: exactly what is asked for, newest first, page by page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_services.core import Circumstances, HttpRequest
from fake_services.payments.core import PaymentsCore
from fake_services.payments.errors import RefusedError
from fake_services.payments.search import Clause, parse_query

START_S = 1_700_000_000
JSON = dict[str, Any]


def call(
    core: PaymentsCore, method: str, path: str, form: Mapping[str, object], now_s: float = START_S
) -> tuple[int, JSON]:
    """Status and JSON of one request."""
    text = urlencode(form)
    query, body = ("", text.encode()) if method == "POST" else (text, b"")
    request = HttpRequest(method, path, query, {"authorization": "Bearer sk_test_1"}, body)
    reply = core.apply(request, core.understand(request), Circumstances(now_s=now_s)).reply
    return reply.status, json.loads(reply.body)


def charge(core: PaymentsCore, now_s: float = START_S, **form: object) -> JSON:
    """A new charge."""
    params = {"amount": 4200, "currency": "eur", **form}
    status, made = call(core, "POST", "/v1/charges", params, now_s)
    assert status in {200, 402}
    return made


def found(core: PaymentsCore, query: str, resource: str = "charges") -> list[str]:
    """The ids that a search finds, over all pages of two."""
    ids: list[str] = []
    page: dict[str, str] = {}
    while True:
        params = {"query": query, "limit": 2, **page}
        status, answer = call(core, "GET", f"/v1/{resource}/search", params)
        assert status == 200, answer
        ids += [item["id"] for item in answer["data"]]
        assert answer["has_more"] == (answer["next_page"] is not None)
        if not answer["has_more"]:
            return ids
        page = {"page": answer["next_page"]}


def quoted(text: str) -> str:
    """``text`` as a value of a query."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


VALUES = st.sampled_from(["17", "170", "x'y", 'say "hi"', "back\\slash", "Ärger", "äRGER", "a b"])


@given(st.lists(st.dictionaries(st.sampled_from(["order", "run"]), VALUES), max_size=12), VALUES)
def test_a_search_by_metadata_finds_exactly_the_charges_with_it(
    metadata: list[dict[str, str]], wanted: str
) -> None:
    """Neither one more nor one less, the newest first, whatever characters the value has."""
    core = PaymentsCore()
    made = [
        charge(core, START_S, **{f"metadata[{name}]": value for name, value in each.items()})["id"]
        for each in metadata
    ]
    expected = [
        ref
        for ref, each in zip(made, metadata, strict=True)
        if each.get("order", "").casefold() == wanted.casefold()
    ]
    assert found(core, f"metadata['order']:{quoted(wanted)}") == expected[::-1]
    others = [ref for ref in made if ref not in expected]
    assert found(core, f"-metadata['order']:{quoted(wanted)}") == others[::-1]


Row = Mapping[str, Any]
CLAUSES: Sequence[tuple[str, Callable[[Row], bool]]] = (
    ("metadata['order']:'1'", lambda row: row["order"] == "1"),
    ('-metadata["order"]:"1"', lambda row: row["order"] != "1"),
    ("metadata['order']:null", lambda row: row["order"] is None),
    ("-metadata['order']:NULL", lambda row: row["order"] is not None),
    ("metadata['order']~'234'", lambda row: "234" in (row["order"] or "")),
    ("amount>100", lambda row: row["amount"] > 100),
    ("amount<=100", lambda row: row["amount"] <= 100),
    ("-amount:100", lambda row: row["amount"] != 100),
    ("amount=200", lambda row: row["amount"] == 200),
    ("customer:'cus_x'", lambda row: row["customer"] == "cus_x"),
    ("currency:'EUR'", lambda row: row["amount"] > 0),
    ("status:'failed'", lambda row: row["source"] == "tok_chargeDeclined"),
    (f"created>={START_S + 3}", lambda row: row["at_s"] >= START_S + 3),
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "order": st.sampled_from([None, "1", "2", "12345"]),
            "amount": st.sampled_from([99, 100, 200]),
            "customer": st.sampled_from([None, "cus_x", "cus_y"]),
            "source": st.sampled_from(["tok_visa", "tok_chargeDeclined"]),
        }
    ),
    max_size=8,
)


@given(
    ROWS,
    st.lists(st.sampled_from(CLAUSES), min_size=1, max_size=4),
    st.sampled_from([" AND ", " and ", " ", " OR ", "  or  "]),
)
def test_any_query_finds_what_its_clauses_say(
    rows: list[dict[str, Any]],
    clauses: list[tuple[str, Callable[[Row], bool]]],
    joint: str,
) -> None:
    """The index and the scan agree with the plain meaning of AND, OR, ``-`` and the operators."""
    core = PaymentsCore()
    for second, row in enumerate(rows):
        row["at_s"] = START_S + second
        form = {
            "amount": row["amount"],
            "source": row["source"],
            **({"metadata[order]": row["order"]} if row["order"] else {}),
            **({"customer": row["customer"]} if row["customer"] else {}),
        }
        charge(core, now_s=row["at_s"], **form)
    _, listed = call(core, "GET", "/v1/charges", {"limit": 100})
    ids = [item["id"] for item in listed["data"]][::-1]
    holds = any if joint.strip().lower() == "or" else all
    expected = [
        ref for ref, row in zip(ids, rows, strict=True) if holds(test(row) for _, test in clauses)
    ]
    assert found(core, joint.join(text for text, _ in clauses)) == expected[::-1]


def test_customers_and_intents_are_searched_by_their_own_fields() -> None:
    """A customer is found by a part of the address, an intent by its metadata."""
    core = PaymentsCore()
    _, ann = call(core, "POST", "/v1/customers", {"email": "ann@example.org", "name": "Ann"})
    call(core, "POST", "/v1/customers", {"email": "bob@example.org"})
    assert found(core, "email~'ANN@'", "customers") == [ann["id"]]
    params = {"amount": 5, "currency": "eur", "metadata[order]": "9"}
    _, intent = call(core, "POST", "/v1/payment_intents", params)
    query = "metadata['order']:'9' -status:'succeeded'"
    assert found(core, query, "payment_intents") == [intent["id"]]


def test_a_search_by_card_finds_the_card() -> None:
    """Members of members have dotted names."""
    core = PaymentsCore()
    made = charge(core)
    assert found(core, "payment_method_details.card.last4:4242") == [made["id"]]
    assert found(core, "-refunded:'true' disputed:'false'") == [made["id"]]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "asdf",
        "status",
        "status:",
        "status:'open",
        "status:'a' AND",
        "AND status:'a'",
        "status:'a'status:'b'",
        "foo:'bar'",
        "email:'a@b'",
        "amount:'many'",
        "amount~'100'",
        "status>'a'",
        "status~'suc'",
        "metadata['a']~'ab'",
        "metadata['a']>1",
        "metadata['a']~null",
        "amount>null",
        "metadata[a]:'b'",
        "(status:'a')",
        "status:'a' AND amount>1 OR amount<5",
        "status:'a' amount>1 or amount<5",
    ],
)
def test_an_ill_formed_query_is_refused(query: str) -> None:
    """The answer is Stripe's 400 for the parameter ``query``."""
    status, answer = call(PaymentsCore(), "GET", "/v1/charges/search", {"query": query})
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert answer["error"]["param"] == "query"


@given(st.text(alphabet=st.sampled_from("-amount:status'\"\\[]<>=~ ANDORmetadata1é"), max_size=40))
def test_any_text_is_a_query_or_is_refused(text: str) -> None:
    """Parsing ends in one of the two."""
    try:
        query = parse_query(text, "charges")
    except RefusedError:
        return
    assert all(isinstance(clause, Clause) for clause in query.clauses)


@given(st.integers(0, 14), st.integers(1, 6))
def test_the_pages_of_a_list_are_the_whole_list(count: int, limit: int) -> None:
    """Forwards by ``starting_after`` and back by ``ending_before``, nothing is left out."""
    core = PaymentsCore()
    made = [charge(core)["id"] for _ in range(count)][::-1]
    seen: list[str] = []
    more, cursor = True, dict[str, str]()
    while more:
        _, page = call(core, "GET", "/v1/charges", {"limit": limit, **cursor})
        seen += [item["id"] for item in page["data"]]
        more, cursor = page["has_more"], {"starting_after": seen[-1] if seen else ""}
    assert seen == made
    back = seen[-1:]
    more = bool(back)
    while more:
        _, page = call(core, "GET", "/v1/charges", {"limit": limit, "ending_before": back[0]})
        back = [item["id"] for item in page["data"]] + back
        more = page["has_more"]
    assert back == made


def test_a_list_is_filtered_by_customer_and_time() -> None:
    """Filters hold together, and ten is the usual length of a page."""
    core = PaymentsCore()
    for second in range(12):
        charge(core, now_s=START_S + second, customer="cus_a" if second % 2 else "cus_b")
    params = {"customer": "cus_a", "created[gte]": START_S + 3, "created[lt]": START_S + 9}
    _, page = call(core, "GET", "/v1/charges", params)
    assert [item["created"] - START_S for item in page["data"]] == [7, 5, 3]
    _, page = call(core, "GET", "/v1/charges", {})
    assert (len(page["data"]), page["has_more"], page["url"]) == (10, True, "/v1/charges")
    _, page = call(core, "GET", "/v1/charges", {"created": START_S + 1})
    assert len(page["data"]) == 1


@pytest.mark.parametrize(
    ("params", "param"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 101}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"starting_after": "ch_nobody"}, "starting_after"),
        ({"ending_before": "ch_nobody"}, "ending_before"),
        ({"created[gt]": "soon"}, "created"),
        ({"customer[id]": "x"}, "customer"),
    ],
)
def test_an_ill_formed_list_parameter_is_refused(params: JSON, param: str) -> None:
    """The refusal names the parameter."""
    status, answer = call(PaymentsCore(), "GET", "/v1/charges", params)
    assert status == 400
    assert answer["error"].get("param", param) in {param, "gt"}


def test_an_unknown_page_of_a_search_is_refused() -> None:
    """A page that no answer has named is not the first one either."""
    params = {"query": "amount>1", "page": "elsewhere"}
    status, answer = call(PaymentsCore(), "GET", "/v1/charges/search", params)
    assert (status, answer["error"]["param"]) == (400, "page")


def test_the_pages_of_a_search_stay_in_place_while_new_charges_come() -> None:
    """The second page goes on where the first one ended."""
    core = PaymentsCore()
    made = [charge(core)["id"] for _ in range(4)]
    params: JSON = {"query": "amount>1", "limit": 2}
    _, first = call(core, "GET", "/v1/charges/search", params)
    charge(core)
    _, second = call(core, "GET", "/v1/charges/search", {**params, "page": first["next_page"]})
    ids = [item["id"] for item in (*first["data"], *second["data"])]
    assert ids == made[::-1]
