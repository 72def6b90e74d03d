"""A client of the service's own server: simple queries, one after the other, answered at once.

It waits for each answer, so it may only be used where that takes well under a millisecond or
where nobody waits: between trials, after an attempt, and for the books of one commit.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence

from chaoskit.model.errors import HarnessError
from fake_services.postgres.wire import Frames, error_fields, first_message, message

Row = Sequence[str | None]

_TIMEOUT_S = 60.0
_READ_BYTES = 1 << 16


class SqlError(HarnessError):
    """The server refuses a statement; ``sqlstate`` is its code."""

    def __init__(self, sqlstate: str, words: str) -> None:
        super().__init__(f"postgres: {words} ({sqlstate})")
        self.sqlstate = sqlstate


class Client:
    """One connection.

    Args:
        path: of the server's Unix socket.
        user: the role.
        database: which one.
    """

    def __init__(self, path: str, user: str, database: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_TIMEOUT_S)
        self._frames = Frames()
        try:
            self._socket.connect(path)
            self._send(first_message(user=user, database=database, application_name="chaoskit"))
            self._answer()
        except BaseException:
            self._socket.close()
            raise

    def query(self, sql: str) -> list[Row]:
        """Run statements; the rows of all of them, as texts.

        Raises:
            SqlError: the server refuses one.
            HarnessError: the server has gone.
        """
        self._send(message("Q", sql.encode() + b"\0"))
        return self._answer()

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as gone:
            raise HarnessError(f"postgres: the server has gone: {gone}") from gone

    def _answer(self) -> list[Row]:
        rows: list[Row] = []
        refused: SqlError | None = None
        while True:
            try:
                data = self._socket.recv(_READ_BYTES)
            except OSError as gone:
                raise HarnessError(f"postgres: the server has gone: {gone}") from gone
            if not data:
                raise refused or HarnessError("postgres: the server has closed the connection")
            for found in self._frames.feed(data):
                if found.kind == "D":
                    rows.append(_row(found.content))
                elif found.kind == "E":
                    fields = error_fields(found)
                    refused = SqlError(fields.get("C", ""), fields.get("M", ""))
                elif found.kind == "Z":
                    if refused is not None:
                        raise refused
                    return rows


def _row(content: bytes) -> Row:
    """A DataRow: a count, and for each value its length (-1: NULL) and its bytes."""
    values: list[str | None] = []
    at = 2
    for _ in range(int.from_bytes(content[:2], "big")):
        length = int.from_bytes(content[at : at + 4], "big", signed=True)
        at += 4
        if length < 0:
            values.append(None)
        else:
            values.append(content[at : at + length].decode("utf-8", "replace"))
            at += length
    return values


def literal(text: str) -> str:
    """``text`` as an SQL string, whatever the setting of backslashes."""
    quoted = text.replace("\\", "\\\\").replace("'", "''")
    return f"E'{quoted}'"
