"""Markdown from docstrings and plain words."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence

Row = Sequence[str]


def text(words: str) -> str:
    """Plain words as Markdown: what would be markup is escaped, code stays as it is."""
    parts = re.split(r"(``.+?``|`[^`]+`)", words)
    parts[::2] = [re.sub(r"([*|<\[\]])", r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [f"`{part.strip('`')}`" for part in parts[1::2]]
    return "".join(parts)


def cell(words: str) -> str:
    """The same in one line of a table."""
    return re.sub(r"(`[^`]*`)", lambda code: code[0].replace("|", r"\|"), " ".join(words.split()))


def table(head: Row, rows: Iterator[Row] | Sequence[Row]) -> Iterator[str]:
    yield ""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(map(cell, row))} |" for row in rows)
    yield ""


def prose(docstring: str | None) -> list[str]:
    """A docstring's paragraphs up to its sections; indented ones are code."""
    whole = inspect.cleandoc(docstring or "")
    told = re.split(r"^(?:Args|Returns|Raises):$", whole, flags=re.MULTILINE)[0]
    lines: list[str] = []
    for block in re.split(r"\n\s*\n", told.strip()):
        if block.startswith("    "):
            lines += ["```text", inspect.cleandoc(block), "```", ""]
        else:
            lines += [text(block), ""]
    return lines


def arguments(docstring: str | None) -> dict[str, str]:
    """What a docstring's ``Args:`` say, by name."""
    text = inspect.cleandoc(docstring or "").partition("\nArgs:\n")[2]
    text = re.split(r"\n(?=\S)", text)[0]
    found = re.findall(r"^    (\w+): (.+(?:\n {8,}.+)*)", text, re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in found}
