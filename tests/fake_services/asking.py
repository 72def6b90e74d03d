"""Requests to the payments core, as the host would hand them over."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from fake_services.core import Circumstances, HttpRequest, Outcome
from fake_services.payments.core import PaymentsCore

NOW = Circumstances(now_s=1_700_000_000.9)
TWICE = Circumstances(now_s=NOW.now_s, apply_twice=True)
CHARGE = {"amount": "4200", "currency": "eur", "source": "tok_visa"}
JSON = dict[str, Any]


def request(
    method: str, path: str, form: Mapping[str, object] | None = None, **headers: str
) -> HttpRequest:
    """A request with an API key."""
    text = urlencode(form or {})
    query, body = ("", text.encode()) if method == "POST" else (text, b"")
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpRequest(method, path, query, {"authorization": "Bearer sk_test_1", **named}, body)


def send(core: PaymentsCore, asked: HttpRequest, when: Circumstances = NOW) -> Outcome:
    """The request, understood and applied as the host does it."""
    return core.apply(asked, core.understand(asked), when)


def post(
    core: PaymentsCore, path: str, form: Mapping[str, object], when: Circumstances = NOW
) -> tuple[int, JSON, Outcome]:
    """Status, JSON and outcome of a POST."""
    outcome = send(core, request("POST", path, form), when)
    return outcome.reply.status, json.loads(outcome.reply.body), outcome
