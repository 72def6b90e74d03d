"""Texts of tasks and schedules are shown as they are."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout

import pytest
from rich.console import Console
from rich.emoji import Emoji
from rich.errors import MarkupError

from chaoskit.cli.console import console, plain_console

TEXTS = ["kill@a#1 / damage:zero:*", "[bold]steps[0][/bold]", ":warning: [/]", "a:100:b 12"]


@pytest.mark.parametrize("text", TEXTS)
def test_no_text_is_markup_or_a_smiley(text: str) -> None:
    """A schedule that damages files is not a picture, and brackets of a task's are kept."""
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        console().print(text)
        plain_console(stderr=True).print(text)
    assert (out.getvalue(), errors.getvalue()) == (f"{text}\n", f"{text}\n")


def test_a_console_of_the_librarys_own_would_change_them() -> None:
    """The texts above tell the two apart: rich has a picture for a zero, and reads brackets."""
    assert str(Emoji("zero")) != ":zero:"
    with pytest.raises(MarkupError):
        Console(file=io.StringIO()).print("[/]")
