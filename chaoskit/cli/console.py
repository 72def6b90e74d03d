"""Where reports go, and how a few facts are laid out."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text


def console() -> Console:
    """Standard output, in colour where it is a terminal (and NO_COLOR unset)."""
    return plain_console()


def plain_console(*, stderr: bool = False, soft_wrap: bool = False) -> Console:
    """A console that shows texts as they are: ``damage:zero:*`` holds neither markup nor a smiley.

    What is to be styled is a `rich.text.Text`.
    """
    return Console(highlight=False, markup=False, emoji=False, stderr=stderr, soft_wrap=soft_wrap)


def labelled(rows: Iterable[tuple[str, str]], out: Console) -> None:
    """Print each text beside its label."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in rows:
        table.add_row(label, Text(text))
    out.print(Padding(table, (0, 0, 0, 2), expand=False))
