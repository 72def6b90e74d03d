"""Words of options that several commands read in the same way."""

from __future__ import annotations

import shlex

from chaoskit.model.errors import UsageError


def pair(text: str, option: str) -> tuple[str, str]:
    """NAME=VALUE as its two parts.

    Raises:
        UsageError: it is none.
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"{option} takes NAME=VALUE, not {text!r}")
    return name, value


def resume_words(text: str) -> tuple[str, ...]:
    """The words of ``--resume``, as a shell reads them.

    Raises:
        UsageError: a quote is not closed.
    """
    try:
        return tuple(shlex.split(text))
    except ValueError as wrong:
        raise UsageError(f"--resume {text!r} is no command line: {wrong}") from wrong
