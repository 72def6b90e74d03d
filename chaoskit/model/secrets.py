"""Secrets do not belong into books and reports: known names and known shapes are blotted out.

This is a net with known meshes, not a promise: a secret under a harmless name is not recognised.
"""

from __future__ import annotations

import re

BLOT = "[redacted]"

_NAMES = frozenset(
    {
        "access_token",
        "api_key",
        "apikey",
        "authorization",
        "client_secret",
        "cvc",
        "cvv",
        "passwd",
        "password",
        "private_key",
        "secret",
        "secret_key",
    }
)

_CARD_PARENTS = frozenset({"card", "source", "bank_account", "external_account"})
"""Whose ``number`` is one that a report must not show."""

_SHAPES = re.compile(
    r"(?:sk|rk|whsec)_(?:live|test)_[A-Za-z0-9]{4,}"  # payment provider keys
    r"|(?<![A-Za-z])(?:Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}"  # HTTP credentials
    r"|AKIA[0-9A-Z]{16}"  # cloud access keys
    r"|gh[pousr]_[A-Za-z0-9]{20,}"  # source forge tokens
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)


def is_secret_name(name: str) -> bool:
    """Whether a field of this dotted name holds a secret (``source.cvc``, ``card.number``)."""
    *parents, last = name.lower().split(".")
    return last in _NAMES or (last == "number" and bool(parents) and parents[-1] in _CARD_PARENTS)


def without_secrets(text: str) -> str:
    """``text`` with everything that has the shape of a credential blotted out."""
    return _SHAPES.sub(BLOT, text)


def lines_without_secrets(text: str) -> list[str]:
    """The lines of ``text``, as many as it has, with credentials blotted out: also such as go over
    several lines.
    """
    return _SHAPES.sub(lambda found: BLOT + "\n" * found[0].count("\n"), text).split("\n")
