"""Requests to the page and their answers; docs/serve.md has the list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec

from chaoskit.model.errors import HarnessError, ScenarioError, UsageError, unknown_name
from fake_services.core import HttpReply, HttpRequest, json_reply
from fake_services.page.desk import Desk
from fake_services.page.document import document
from fake_services.page.forms import Problem
from fake_services.page.guard import HEADERS, TOKEN_HEADER, Guard
from fake_services.page.safe import VALUE_MOST, line
from fake_services.page.views import WINDOW_MOST, Cut

STATE = "/api/state"

_COUNT_MOST = 10**12

S = TypeVar("S", bound=msgspec.Struct)


class _Switch(msgspec.Struct, forbid_unknown_fields=True):
    behaviour: str
    on: bool


class _Forget(msgspec.Struct, forbid_unknown_fields=True):
    behaviour: str


class _Clock(msgspec.Struct, forbid_unknown_fields=True):
    seconds: float
    service: str = ""


class _Nothing(msgspec.Struct, forbid_unknown_fields=True):
    pass


class Routes:
    """The answers of one page."""

    def __init__(self, desk: Desk, guard: Guard) -> None:
        self._desk = desk
        self._guard = guard
        self._looks: Mapping[str, Callable[[dict[str, str]], object]] = {
            STATE: self._state,
            "/api/effects": lambda given: desk.effects(_cut(given)),
            "/api/requests": lambda given: desk.requests(_cut(given)),
            "/api/tables": lambda _: desk.tables(),
        }
        self._deeds: Mapping[str, Callable[[bytes], None]] = {
            "/api/behaviours": self._switch,
            "/api/behaviours/forget": self._forget,
            "/api/clock": self._move_clock,
            "/api/land": self._land,
            "/api/reset": self._reset,
        }

    def answer(self, request: HttpRequest) -> HttpReply:
        """The answer to a request that is whole; raises nothing, whatever the bytes."""
        denied = self._guard.denial(request)
        if denied is not None:
            return _reply(denied.status, Problem(denied.message))
        try:
            if request.method == "GET" and request.path == "/":
                body, policy = document(self._guard.token, TOKEN_HEADER)
                kind = {"content-type": "text/html; charset=utf-8"}
                return HttpReply(200, body, {**HEADERS, **kind, "content-security-policy": policy})
            if request.method == "GET":
                return self._look(request)
            return self._do(request)
        except (ScenarioError, HarnessError) as failed:  # a database cannot be read just now
            return _reply(503, Problem(line(str(failed), VALUE_MOST)))
        except UsageError as wrong:
            return _reply(400, Problem(line(str(wrong), VALUE_MOST)))

    def _look(self, request: HttpRequest) -> HttpReply:
        path, given = request.path, read_query(request.query)
        if path in self._looks:
            return _reply(200, self._looks[path](given))
        match path.split("/", 3):
            case ["", "api", "effects", number]:
                return _reply(200, self._desk.effect(_count("the number", number)))
            case ["", "api", "tables", table]:
                cut = _cut(given)
                return _reply(200, self._desk.rows(table, cut.start, cut.limit))
        return _no_such(path, self._looks)

    def _state(self, given: dict[str, str]) -> object:
        for name in ("after", "wait_s"):  # what they mean is the server's business
            read_count(given, name, 0)
        return self._desk.state()

    def _do(self, request: HttpRequest) -> HttpReply:
        deed = self._deeds.get(request.path)
        if deed is None:
            return _no_such(request.path, self._deeds)
        deed(request.body)
        return _reply(200, self._desk.state())

    def _switch(self, body: bytes) -> None:
        asked = _read(body, _Switch)
        self._desk.controls.switch(asked.behaviour, on=asked.on)

    def _forget(self, body: bytes) -> None:
        self._desk.controls.forget(_read(body, _Forget).behaviour)

    def _move_clock(self, body: bytes) -> None:
        asked = _read(body, _Clock)
        self._desk.controls.move_clocks(asked.seconds, asked.service)

    def _land(self, body: bytes) -> None:
        _read(body, _Nothing)
        self._desk.controls.land()

    def _reset(self, body: bytes) -> None:
        _read(body, _Nothing)
        self._desk.controls.reset()


_QUERY = ("after", "limit", "q", "service", "start", "wait_s")


def read_query(query: str) -> dict[str, str]:
    """The parameters of a request.

    Raises:
        UsageError: one that there is not.
    """
    given = dict(parse_qsl(query, keep_blank_values=True))
    for name in given:
        if name not in _QUERY:
            raise unknown_name("parameter", name, _QUERY)
    return given


def read_count(given: Mapping[str, str], name: str, default: int) -> int:
    """A parameter that counts something.

    Raises:
        UsageError: it is no number from 0 on.
    """
    return _count(name, given[name]) if name in given else default


def _count(what: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 13 and int(text) <= _COUNT_MOST):
        raise UsageError(f"{what} is a number from 0 on, not {text[:40]!r}")
    return int(text)


def _cut(given: Mapping[str, str]) -> Cut:
    limit = read_count(given, "limit", 100)
    if limit > WINDOW_MOST:
        raise UsageError(f"limit is a number up to {WINDOW_MOST}; ask again with another start")
    return Cut(
        service=given.get("service", ""),
        words=given.get("q", ""),
        start=read_count(given, "start", 0),
        limit=limit,
    )


def _read(body: bytes, kind: type[S]) -> S:
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as wrong:
        fields = ", ".join(kind.__struct_fields__) or "nothing"
        raise UsageError(f"the body is a JSON object with {fields}: {wrong}") from wrong


def _no_such(path: str, known: Mapping[str, object]) -> HttpReply:
    return _reply(404, Problem(line(str(unknown_name("path", path[:200], known)), VALUE_MOST)))


def _reply(status: int, value: object) -> HttpReply:
    return json_reply(status, value, HEADERS)
