"""Forty steps, each a charge and a row in the task's own SQLite file; one scenario a variant.

    chaoskit run scenarios/exact/forty_steps.py:wal              charge, then record: twice where
    chaoskit run scenarios/exact/forty_steps.py:delete           a kill comes in between
    chaoskit run scenarios/exact/forty_steps.py:looks_up         intent, look up, charge, record:
                                                                 right, unless a charge lands late
    chaoskit run scenarios/exact/forty_steps.py:keyed            the same with a key: right

The tests predict from the trace alone at which points each of them must fail, and the benchmarks
measure how fast all of them are visited.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlencode, urlsplit

from chaoskit import Scenario

STEPS = 40
Client = Literal["http.client", "requests", "httpx"]
Care = Literal["none", "look up", "key"]

Ask = Callable[[str, str, dict[str, str]], dict[str, object]]
"""Method, path and form in, the answer's JSON out; ``key`` in the form is sent as a header."""


def run(
    journal: str = "WAL", client: Client = "http.client", care: Care = "none", steps: int = STEPS
) -> None:
    """Charge and record every step that is not recorded yet."""
    ask = _CLIENTS[client](os.environ["CHAOSKIT_PAYMENTS_URL"])
    books = sqlite3.connect(Path(os.environ["CHAOSKIT_STATE_DIR"]) / "run.db", isolation_level=None)
    books.execute(f"PRAGMA journal_mode = {journal}")
    books.execute("PRAGMA synchronous = FULL")
    books.execute("CREATE TABLE IF NOT EXISTS steps (step INTEGER PRIMARY KEY, charge TEXT)")
    begun = dict(books.execute("SELECT step, charge FROM steps"))
    for step in range(1, steps + 1):
        if begun.get(step):
            continue
        charge = None
        if care != "none" and step not in begun:
            books.execute("INSERT INTO steps VALUES (?, NULL)", (step,))
        elif care != "none":
            charge = _look_up(ask, step)
        if charge is None:
            charge = _charge(ask, step, keyed=care == "key")
        books.execute("INSERT OR REPLACE INTO steps VALUES (?, ?)", (step, charge))


def _charge(ask: Ask, step: int, *, keyed: bool) -> str:
    form = {
        "amount": str(1000 + step),
        "currency": "eur",
        "source": "tok_visa",
        "metadata[reference]": f"step-{step}",
    }
    return str(ask("POST", "/v1/charges", form | ({"key": f"step-{step}"} if keyed else {}))["id"])


def _look_up(ask: Ask, step: int) -> str | None:
    query = quote(f"metadata['reference']:'step-{step}'")
    found = ask("GET", f"/v1/charges/search?query={query}", {})["data"]
    return str(found[0]["id"]) if isinstance(found, list) and found else None


def _headers(form: dict[str, str]) -> dict[str, str]:
    key = form.pop("key", None)
    headers = {
        "Authorization": "Bearer sk_test_forty",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    return headers | ({"Idempotency-Key": key} if key else {})


def _with_http_client(url: str) -> Ask:
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=30)

    def ask(method: str, path: str, form: dict[str, str]) -> dict[str, object]:
        headers = _headers(form)
        connection.request(method, path, urlencode(form).encode() if form else None, headers)
        answer: dict[str, object] = json.loads(connection.getresponse().read())
        return answer

    return ask


def _with_requests(url: str) -> Ask:
    import requests

    session = requests.Session()

    def ask(method: str, path: str, form: dict[str, str]) -> dict[str, object]:
        headers = _headers(form)
        answer: dict[str, object] = session.request(
            method, url + path, data=form or None, headers=headers, timeout=30
        ).json()
        return answer

    return ask


def _with_httpx(url: str) -> Ask:
    import httpx

    session = httpx.Client(base_url=url, timeout=30)

    def ask(method: str, path: str, form: dict[str, str]) -> dict[str, object]:
        headers = _headers(form)
        answer: dict[str, object] = session.request(
            method, path, data=form or None, headers=headers
        ).json()
        return answer

    return ask


_CLIENTS: dict[Client, Callable[[str], Ask]] = {
    "http.client": _with_http_client,
    "requests": _with_requests,
    "httpx": _with_httpx,
}


def _scenario(title: str, *expect: str, **how: object) -> Scenario:
    task = partial(run, **how)  # type: ignore[arg-type]
    return Scenario(title=title, task=task, services=("payments",), finds=expect)


TWICE = "duplicate_effect"

wal = _scenario("charge, then record, in WAL mode", TWICE)
delete = _scenario("charge, then record, with a rollback journal", TWICE, journal="DELETE")
wal_requests = _scenario("the same by requests, in WAL mode", TWICE, client="requests")
delete_requests = _scenario("the same by requests", TWICE, journal="DELETE", client="requests")
wal_httpx = _scenario("the same by httpx, in WAL mode", TWICE, client="httpx")
delete_httpx = _scenario("the same by httpx", TWICE, journal="DELETE", client="httpx")
looks_up = _scenario("intent, look up, charge, record; no key", TWICE, care="look up", steps=10)
keyed = _scenario("intent, look up, charge with a key, record", care="key", steps=10)

scenario = wal
