"""Who may look at the page and who may act by it: nobody from another site."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_services.core import HttpRequest
from fake_services.page.guard import BODY_BYTES_MAX, Guard

GUARD = Guard(8000, "the-token")
HOME = {"host": "127.0.0.1:8000"}
ACT = {**HOME, "chaoskit-page-token": "the-token", "content-type": "application/json"}


def status(
    method: str, headers: dict[str, str], path: str = "/api/state", body: bytes = b""
) -> int:
    """The status of the refusal; 0: it is none."""
    denied = GUARD.denial(HttpRequest(method, path, "", headers, body))
    return denied.status if denied else 0


@pytest.mark.parametrize(
    "headers",
    [
        HOME,
        {"host": "localhost:8000"},
        {"host": "LOCALHOST:8000"},
        {**HOME, "origin": "http://127.0.0.1:8000"},
        {**HOME, "origin": "http://localhost:8000", "sec-fetch-site": "same-origin"},
        {**HOME, "sec-fetch-site": "none"},
    ],
)
def test_the_page_itself_and_scripts_may_look(headers: dict[str, str]) -> None:
    """By either name of loopback; a script sends no Origin."""
    assert status("GET", headers) == 0
    assert status("POST", {**ACT, **headers}) == 0


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": "evil.example:8000"},
        {"host": "127.0.0.1"},
        {"host": "127.0.0.1:8001"},
        {"host": "127.0.0.1:8000.evil.example"},
        {**HOME, "origin": "http://evil.example"},
        {**HOME, "origin": "https://127.0.0.1:8000"},
        {**HOME, "origin": "http://127.0.0.1:8001"},
        {**HOME, "origin": "null"},
        {**HOME, "origin": ""},
        {**HOME, "sec-fetch-site": "cross-site"},
        {**HOME, "sec-fetch-site": "same-site"},
    ],
)
def test_foreign_hosts_and_origins_are_refused(headers: dict[str, str]) -> None:
    """Looking and acting, even with the right token."""
    assert status("GET", headers) == 403
    with_token = {k: v for k, v in ACT.items() if k != "host"}
    assert status("POST", {**with_token, **headers}) == 403


def test_a_link_to_the_page_may_be_followed_from_anywhere() -> None:
    """As a document of its own; not in a frame, not to its data, and not to act."""
    link = {**HOME, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert status("GET", {**link, "sec-fetch-dest": "document"}, "/") == 0
    assert status("GET", {**link, "sec-fetch-dest": "iframe"}, "/") == 403
    assert status("GET", {**link, "sec-fetch-dest": "document"}, "/api/state") == 403
    assert status("POST", {**ACT, **link, "sec-fetch-dest": "document"}, "/") == 403


def test_who_acts_brings_the_token_and_json() -> None:
    """Without the token, with another one, with a form's type, or with too much: refused."""
    assert status("POST", {**ACT, "chaoskit-page-token": "another"}) == 403
    assert status("POST", {k: v for k, v in ACT.items() if "token" not in k}) == 403
    assert status("POST", {**ACT, "content-type": "text/plain"}) == 415
    assert status("POST", {**ACT, "content-type": "application/json; charset=utf-8"}) == 0
    assert status("POST", ACT, body=b"x" * (BODY_BYTES_MAX + 1)) == 413
    assert status("PUT", ACT) == 405


@given(st.text(), st.text(), st.text())
def test_no_header_makes_it_fail(host: str, origin: str, token: str) -> None:
    """Whatever is sent, there is an answer that can be encoded."""
    headers = {"host": host, "origin": origin, "chaoskit-page-token": token}
    denied = GUARD.denial(HttpRequest("POST", "/", "", headers))
    assert denied is not None
    denied.message.encode()
    denied = GUARD.denial(HttpRequest("POST", "/", "", {**ACT, "chaoskit-page-token": token}))
    assert (denied is None) == (token == "the-token")
