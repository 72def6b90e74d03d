"""Requests and answers of the jobs service, as JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from urllib.parse import parse_qsl

import msgspec

from fake_services.core import HttpReply, json_reply

POLLS_DEFAULT = 3
POLLS_MAX = 1000

Status: TypeAlias = Literal["queued", "running", "done", "cancelled"]

_ID = re.compile(r"[A-Za-z0-9_.:\-]{1,200}")
_FILTERS = ("key", "name", "status")


class BadRequestError(Exception):
    """A request that the service refuses; ``reply`` says why."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.reply = problem(status, code, message)


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of ``POST /jobs``.

    ``id`` is one that the caller chose; ``polls`` is after how many polls the job is done.
    """

    name: str
    input: Any = None
    id: str | None = None
    polls: int = POLLS_DEFAULT


@dataclass(frozen=True, slots=True)
class Job:
    """A job. ``polled`` is how often its status was asked for; ``submitted`` on which request."""

    id: str
    wanted: Wanted
    key: str | None
    submitted: int
    polled: int = 0
    cancelled: bool = False

    @property
    def status(self) -> Status:
        """How far it is."""
        if self.cancelled:
            return "cancelled"
        if self.polled >= self.wanted.polls:
            return "done"
        return "running" if self.polled else "queued"


_DECODER = msgspec.json.Decoder(Wanted)


def problem(status: int, code: str, message: str) -> HttpReply:
    """An error as the service words it."""
    # A text from a header or a path may hold what JSON cannot.
    safe = message.encode("utf-8", "replace").decode()
    return json_reply(status, {"error": {"code": code, "message": safe}})


def read_wanted(body: bytes) -> Wanted:
    """The job that ``body`` asks for.

    Raises:
        BadRequestError: 400 where it is no JSON, 422 where it is no job. Nothing else, whatever
            the bytes.
    """
    try:
        wanted = _DECODER.decode(body)
    except msgspec.ValidationError as wrong:
        raise BadRequestError(422, "invalid_job", str(wrong)) from wrong
    except (msgspec.DecodeError, UnicodeError, RecursionError) as wrong:
        raise BadRequestError(400, "invalid_json", f"the body is not JSON: {wrong}") from wrong
    if wanted.id is not None and not _ID.fullmatch(wanted.id):
        raise BadRequestError(422, "invalid_job", "`id` has 1 to 200 letters, digits, . _ : or -")
    if not 1 <= wanted.polls <= POLLS_MAX:
        raise BadRequestError(422, "invalid_job", f"`polls` is a number from 1 to {POLLS_MAX}")
    return wanted


def read_filters(query: str) -> dict[str, str]:
    """What a look-up asks for, by the member that must be equal.

    Raises:
        BadRequestError: 400; an unknown parameter.
    """
    found = dict(parse_qsl(query, keep_blank_values=True))
    for name in found:
        if name not in _FILTERS:
            raise BadRequestError(
                400, "invalid_parameter", f"unknown: {name!r}; there are {', '.join(_FILTERS)}"
            )
    return found


def job_json(job: Job) -> dict[str, object]:
    """A job as the service shows it; ``result`` is null until it is done."""
    return {
        "id": job.id,
        "name": job.wanted.name,
        "input": job.wanted.input,
        "key": job.key,
        "status": job.status,
        "result": {"name": job.wanted.name, "input": job.wanted.input}
        if job.status == "done"
        else None,
    }
