"""Observers for `Run.pin`: a file, a resource by its ETag, a row of an SQLite database."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from chaoskit.runtime.errors import Misuse
from chaoskit.runtime.store_file import address

_CHUNK = 1 << 20
_TIMEOUT_S = 30


def file_digest(path: str | os.PathLike[str]) -> Callable[[], str | None]:
    """The SHA-256 of a file's bytes, in hexadecimal; None if there is no file."""

    def observe() -> str | None:
        digest = sha256()
        try:
            with open(path, "rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
        except FileNotFoundError:
            return None
        return digest.hexdigest()

    return observe


def http_etag(url: str, *, headers: dict[str, str] | None = None) -> Callable[[], str | None]:
    """The ETag of a resource, by a HEAD request (RFC 9110, 8.8.3); None if it is gone.

    Raises, when it observes:
        Misuse: the server gives no ETag, so that nothing could be told apart.
        OSError: it does not answer, or with a status that says nothing about the resource.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise Misuse(f"an address begins with http:// or https://, not {url!r}")

    def observe() -> str | None:
        from http.client import HTTPConnection, HTTPSConnection

        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        with closing(kind(parts.hostname or "", parts.port, timeout=_TIMEOUT_S)) as connection:
            connection.request("HEAD", path, headers=headers or {})
            answer = connection.getresponse()
        if answer.status in {404, 410}:
            return None
        if not 200 <= answer.status < 300:
            raise OSError(f"{url} answered {answer.status} instead of telling its ETag")
        etag = answer.getheader("ETag")
        if etag is None:
            raise Misuse(f"{url} gives no ETag: pin it by a digest of what a step reads of it")
        return etag

    return observe


def sqlite_row(
    path: str | os.PathLike[str], sql: str, parameters: Sequence[Any] = ()
) -> Callable[[], list[Any] | None]:
    """The first row of a query on a database file; None if there is no row."""

    def observe() -> list[Any] | None:
        with closing(sqlite3.connect(address(path, "ro"), uri=True)) as connection:
            row = connection.execute(sql, parameters).fetchone()
            return None if row is None else list(row)

    return observe
