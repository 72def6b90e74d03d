"""Text from anywhere, with what a reader would not see spelt out."""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # controls, escape sequences with them
    "\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # breaks, directions, nothing at all
    "\ud800-\udfff\ufffe\uffff"  # halves of characters (bytes that were not UTF-8), no characters
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e007f]"
)
"""Characters of the classes Cc, Cf, Cs, Zl and Zp of Unicode 15, and two that are never used."""

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str, keep: str = "") -> str:
    """``text`` with controls, directions, and halves of characters spelt out, as ``\\x1b``.

    Args:
        text: from anywhere; what comes of it can always be encoded as UTF-8.
        keep: characters that stay as they are, such as line ends where lines are shown.
    """
    return _UNSEEN.sub(lambda found: found[0] if found[0] in keep else _spelt(found[0]), text)


def _spelt(character: str) -> str:
    number = ord(character)
    if character in _NAMED:
        return _NAMED[character]
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
