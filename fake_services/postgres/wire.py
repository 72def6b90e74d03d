"""Messages of PostgreSQL's protocol 3, as far as someone in the middle has to understand them.

Source: PostgreSQL documentation, Frontend/Backend Protocol, Message Formats. A message is a type
of one byte, its length in four, which counts itself, and its content; the first message of a
connection has no type.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SSL_REQUEST = 80877103
GSS_REQUEST = 80877104
CANCEL_REQUEST = 80877102

_LENGTH = struct.Struct("!I")

_NOISE = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/|\()+", re.DOTALL)
_WORD = re.compile(r"[A-Za-z]+")
_PARTS = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$|--[^\n]*|/\*.*?\*/|;|[^;'"$/-]+|.""",
    re.DOTALL,
)
_WRITES = re.compile(r"\b(?:insert|update|delete|merge)\b", re.IGNORECASE)

_NO_COMMITS = frozenset(
    {
        "abort", "analyze", "begin", "checkpoint", "close", "commit", "deallocate",
        "declare", "discard", "end", "explain", "fetch", "listen", "load", "lock", "move",
        "notify", "prepare", "release", "reset", "rollback", "savepoint", "select", "set",
        "show", "start", "table", "unlisten", "vacuum", "values", "with",
    }
)  # fmt: skip
"""First words of statements that are not taken for a change by themselves. A SELECT may call a
function that writes; what it wrote is then found in the books when the attempt is over."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message; ``kind`` is empty for the first one of a connection."""

    kind: str
    content: bytes
    raw: bytes

    @property
    def text(self) -> str:
        """The first string of the content."""
        return self.content.split(b"\0", 1)[0].decode("utf-8", "replace")

    def string(self, number: int) -> str:
        """A later string of the content, where only strings stand before it."""
        return self.content.split(b"\0", number + 1)[number].decode("utf-8", "replace")


class Frames:
    """Splits a stream of bytes into messages.

    Args:
        untyped: the first one has no type.
    """

    def __init__(self, *, untyped: bool = False) -> None:
        self._bytes = bytearray()
        self.untyped = untyped

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that are complete with ``data``.

        Raises:
            ValueError: the bytes are no messages.
        """
        self._bytes += data
        while True:
            head = 4 if self.untyped else 5
            if len(self._bytes) < head:
                return
            (length,) = _LENGTH.unpack_from(self._bytes, head - 4)
            if length < 4:
                raise ValueError(f"a message of length {length}")
            whole = head - 4 + length
            if len(self._bytes) < whole:
                return
            raw = bytes(self._bytes[:whole])
            del self._bytes[:whole]
            kind = "" if self.untyped else chr(raw[0])
            yield Message(kind, raw[head:], raw)


def message(kind: str, content: bytes = b"") -> bytes:
    """The bytes of a message."""
    return kind.encode() + _LENGTH.pack(len(content) + 4) + content


def first_message(**parameters: str) -> bytes:
    """The bytes that begin a connection."""
    pairs = b"".join(f"{name}\0{value}\0".encode() for name, value in parameters.items())
    content = _LENGTH.pack(3 << 16) + pairs + b"\0"
    return _LENGTH.pack(len(content) + 4) + content


def code_of(first: Message) -> int:
    """What the first message of a connection asks for: a protocol, or one of the requests."""
    return int(_LENGTH.unpack_from(first.content)[0]) if len(first.content) >= 4 else 0


def number_of(found: Message) -> int:
    """The first number in a message: the process of a BackendKeyData."""
    return int(_LENGTH.unpack_from(found.content)[0])


def error(severity: str, sqlstate: str, words: str) -> bytes:
    """An ErrorResponse."""
    fields = {"S": severity, "V": severity, "C": sqlstate, "M": words}
    content = b"".join(f"{name}{value}\0".encode() for name, value in fields.items())
    return message("E", content + b"\0")


def error_fields(found: Message) -> dict[str, str]:
    """The fields of an ErrorResponse by their letters."""
    parts = (part.decode("utf-8", "replace") for part in found.content.split(b"\0") if part)
    return {part[0]: part[1:] for part in parts}


def statements(sql: str) -> Sequence[str]:
    """The statements of a text, each without what is quoted or a comment in it."""
    found = [""]
    for part in _PARTS.finditer(sql):
        text = part[0]
        if text == ";":
            found.append("")
        elif text[0] not in "'\"$" and not text.startswith(("--", "/*")):
            found[-1] += text
        else:
            found[-1] += " "
    return [statement for statement in found if statement.strip()]


def first_word(statement: str) -> str:
    """What a statement begins with, in lower case."""
    noise = _NOISE.match(statement)
    word = _WORD.match(statement, noise.end() if noise else 0)
    return word[0].lower() if word else ""


def begins(statement: str) -> bool:
    """Whether it opens a transaction block."""
    return first_word(statement) in {"begin", "start"}


def commits(statement: str) -> bool:
    """Whether it ends a transaction block, to be kept."""
    second = statement.split()[1:2]
    return first_word(statement) in {"commit", "end"} and [w.lower() for w in second] != [
        "prepared"
    ]


def changes(statement: str) -> bool:
    """Whether it is, outside a transaction block, a transaction that may change something."""
    word = first_word(statement)
    if word in {"with", "explain"}:
        return _WRITES.search(statement) is not None
    return word != "" and word not in _NO_COMMITS
