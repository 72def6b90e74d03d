"""How data and code get into the page: compressed text, and the digests that allow the code."""

from __future__ import annotations

import base64
import hashlib
import zlib

import msgspec


class Strings:
    """A table of texts, each once; rows name them by number. The first one is empty."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}

    def number(self, text: str) -> int:
        """The number of ``text``, which is in the table from now on."""
        return self._numbers.setdefault(text, len(self._numbers))

    @property
    def texts(self) -> list[str]:
        """The table."""
        return list(self._numbers)


def packed(value: object) -> str:
    """``value`` as JSON, deflated without a header (RFC 1951), in base64.

    The page unpacks it with ``DecompressionStream("deflate-raw")``. Base64 has no character that
    means anything in HTML, so nothing that a task wrote can end the element that holds it. Halves
    of characters have no UTF-8: `chaoskit.reporting.clean.plain` has spelt them out before.
    """
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = squeeze.compress(msgspec.json.encode(value)) + squeeze.flush()
    return base64.b64encode(data).decode()


def source(text: str) -> str:
    """What a Content-Security-Policy calls an inline script or style: ``'sha256-…'``."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
