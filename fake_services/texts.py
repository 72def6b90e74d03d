"""Long texts in a ledger: a head to read and a digest to compare."""

from __future__ import annotations

from hashlib import sha256

CHARS_MAX = 500
"""Up to this many characters a text is booked whole."""


def shortened(text: str, chars_max: int = CHARS_MAX) -> str:
    """``text`` itself, or its first ``chars_max`` characters, its length and its SHA-256.

    Two texts are equal exactly when their shortened forms are, so that a ledger full of long
    mails or rows stays small and still tells every one of them apart.
    """
    if len(text) <= chars_max:
        return text
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:chars_max]}… ({len(text)} characters, sha256 {digest})"
