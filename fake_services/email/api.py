"""Requests and answers of the HTTP door, as JSON: what a provider's API accepts and shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

import msgspec

from fake_services.core import HttpReply, json_reply
from fake_services.email.mail import Mail, bracketed, parse_address, with_name
from fake_services.email.mailbox import Sent, Term, term

PAGE_MAX = 1000
"""The most mails in one answer."""

_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_FIXED_HEADERS = frozenset({"from", "to", "cc", "bcc", "subject"})
_ONCE = frozenset({"after", "limit"})


class BadRequestError(Exception):
    """A request that the provider refuses; ``reply`` says why."""

    def __init__(self, status: int, name: str, message: str) -> None:
        super().__init__(message)
        self.reply = problem(status, name, message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Which mails a look-up wants; no ``terms`` means every one."""

    terms: tuple[Term, ...] = ()
    after: str = ""
    limit: int = 100


class _Payload(msgspec.Struct):
    """The body of ``POST /v1/messages``; unknown members are ignored."""

    to: str | list[str]
    sender: str = msgspec.field(name="from")
    cc: str | list[str] | None = None
    bcc: str | list[str] | None = None
    reply_to: str | list[str] | None = None
    subject: str | None = None
    text: str | None = None
    html: str | None = None
    headers: dict[str, str] | None = None
    message_id: str | None = None


_DECODER = msgspec.json.Decoder(_Payload)


def problem(status: int, name: str, message: str) -> HttpReply:
    """An error as the provider words it: ``statusCode``, ``name`` and ``message``."""
    # A text from a header or a path may hold what JSON cannot.
    safe = message.encode("utf-8", "replace").decode()
    return json_reply(status, {"statusCode": status, "name": name, "message": safe})


def read_payload(body: bytes) -> Mail:
    """The mail that ``body`` asks for.

    Raises:
        BadRequestError: 400 where it is no JSON, 422 where it is no mail. Nothing else, whatever
            the bytes.
    """
    try:
        payload = _DECODER.decode(body)
    except msgspec.ValidationError as wrong:
        raise BadRequestError(422, "validation_error", str(wrong)) from wrong
    except (msgspec.DecodeError, UnicodeError, RecursionError) as wrong:
        raise BadRequestError(400, "invalid_json", f"the body is not JSON: {wrong}") from wrong
    headers, message_id = _headers(payload)
    return Mail(
        sender=with_name(*_address("from", payload.sender)),
        to=_recipients("to", payload.to) or _refuse("`to` names nobody"),
        cc=_recipients("cc", payload.cc),
        bcc=_recipients("bcc", payload.bcc),
        subject=_line("subject", payload.subject or ""),
        text=payload.text or "",
        html=payload.html or "",
        headers=headers,
        message_id=message_id,
    )


def read_query(query: str) -> Query:
    """The look-up that a query string asks for.

    Raises:
        BadRequestError: 400; an unknown parameter or a value that it cannot have.
    """
    terms: list[Term] = []
    paging: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in _ONCE:
            paging[name] = value
        elif name == "header":
            header, colon, wanted = value.partition(":")
            if not colon or not header:
                raise BadRequestError(400, "invalid_parameter", "write header=X-Order:17")
            terms.append(term(f"header:{header}", wanted))
        elif name in {"message_id", "to", "subject"}:
            terms.append(term(name, value))
        else:
            known = "message_id, header, to, subject, limit, after"
            raise BadRequestError(400, "invalid_parameter", f"unknown: {name!r}; there are {known}")
    return Query(
        terms=tuple(terms),
        after=paging.get("after", ""),
        limit=_limit(paging.get("limit", "100")),
    )


def message_json(sent: Sent) -> dict[str, object]:
    """A sent mail as the provider shows it; ``created`` in seconds since the epoch."""
    mail = sent.mail
    return {
        "object": "message",
        "id": sent.id,
        "message_id": sent.message_id,
        "created": int(sent.sent_s),
        "from": mail.sender,
        "to": mail.to,
        "cc": mail.cc,
        "bcc": mail.bcc,
        "subject": mail.subject,
        "text": mail.text,
        "html": mail.html,
        "headers": [{"name": name, "value": value} for name, value in mail.headers],
    }


def page_json(page: Sequence[Sent], *, more: bool) -> dict[str, object]:
    """One page of a look-up."""
    return {"object": "list", "data": [message_json(sent) for sent in page], "has_more": more}


def _refuse(why: str) -> tuple[str, ...]:
    raise BadRequestError(422, "validation_error", why)


def _line(what: str, text: str) -> str:
    # A line end in a header is how a mail gets headers that its sender never meant.
    if _CONTROL.search(text):
        raise BadRequestError(422, "validation_error", f"`{what}` holds a control character")
    return text


def _address(what: str, text: str) -> tuple[str, str]:
    found = parse_address(text)
    if found is None:
        raise BadRequestError(
            422,
            "validation_error",
            f"`{what}` is no address: write ann@example.com or Ann <ann@example.com>",
        )
    return found


def _listed(value: str | list[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else value or []


def _recipients(what: str, value: str | list[str] | None) -> tuple[str, ...]:
    return tuple(_address(what, text)[1] for text in _listed(value))


def _headers(payload: _Payload) -> tuple[tuple[tuple[str, str], ...], str]:
    """The headers that the sender chose, and the Message-ID if one was among them."""
    chosen: list[tuple[str, str]] = []
    message_id = payload.message_id or ""
    for name, value in (payload.headers or {}).items():
        if not _HEADER_NAME.fullmatch(name) or name.lower() in _FIXED_HEADERS:
            _refuse("`headers` holds a name that no header can have, or that has its own member")
        if name.lower() == "message-id":
            message_id = message_id or value
        else:
            chosen.append((name, _line("headers", value).strip()))
    if reply_to := _listed(payload.reply_to):
        chosen.append(
            ("Reply-To", ", ".join(with_name(*_address("reply_to", text)) for text in reply_to))
        )
    return tuple(chosen), bracketed(_line("message_id", message_id))


def _limit(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= PAGE_MAX:
        return int(text)
    raise BadRequestError(400, "invalid_parameter", f"`limit` is a number from 1 to {PAGE_MAX}")
