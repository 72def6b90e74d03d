"""Texts that somebody sent, made fit for a page: no secrets, nothing unseen, nothing endless."""

from __future__ import annotations

from chaoskit.model.secrets import BLOT, is_secret_name, without_secrets
from chaoskit.model.visible import visible

LINE_MOST = 200
"""So many characters of a text stand in a line of a list."""

VALUE_MOST = 2_000
"""So many of one value of a thing that is shown by itself."""

TEXT_MOST = 20_000
"""So many of the body of a mail, or of its HTML."""


def line(text: str, most: int = LINE_MOST) -> str:
    """``text`` on one line; where it is cut, how many characters there were."""
    return visible(_cut(without_secrets(text), most))


def value(name: str, text: str) -> str:
    """The value of a field with this dotted name."""
    return BLOT if is_secret_name(name) else line(text, VALUE_MOST)


def lines(text: str) -> str:
    """``text`` with its line ends and tabs, however it ended its lines."""
    whole = without_secrets(text).replace("\r\n", "\n")
    return visible(_cut(whole, TEXT_MOST), keep="\n\t")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"
