"""Words of options that several commands read in the same way."""

from __future__ import annotations

import csv
import io
import json
import shlex
from pathlib import Path

from chaoskit.model.declared import Declared, declared
from chaoskit.model.durations import parse_duration
from chaoskit.model.errors import UsageError, naming


def pair(text: str, option: str) -> tuple[str, str]:
    """NAME=VALUE as its two parts.

    Raises:
        UsageError: it is none.
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"{option} takes NAME=VALUE, not {text!r}")
    return name, value


def named_time(text: str, option: str) -> tuple[str, str]:
    """NAME=TIME as its two parts.

    Raises:
        UsageError: it is none, or TIME is no duration.
    """
    name, time = pair(text, option)
    parse_duration(time, f"{option} {name}=")
    return name, time


def command_words(text: str, option: str) -> tuple[str, ...]:
    """The words of an option's command line, as a shell reads them.

    Raises:
        UsageError: a quote is not closed.
    """
    try:
        return tuple(shlex.split(text))
    except ValueError as wrong:
        raise UsageError(f"{option} {text!r} is no command line: {wrong}") from wrong


def text_of(file: Path, option: str) -> str:
    """The text of a file that an option names.

    Raises:
        UsageError: it cannot be read, or is no UTF-8.
    """
    try:
        with naming(f"{option} {file}", "cannot be read"):
            return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as wrong:
        raise UsageError(f"{option} {file} is not UTF-8 text: {wrong.reason}") from wrong


def read_declared(text: str) -> Declared:
    """What ``OPERATION=NUMBER`` or ``OPERATION=FILE`` says; the file is CSV with a header, or JSON.

    Raises:
        UsageError: it says neither, or the file cannot be read.
    """
    option = "--expect"
    operation, wanted = pair(text, option)
    if not wanted:
        raise UsageError(f"{option} takes OPERATION=NUMBER or OPERATION=FILE, not {text!r}")
    (one,) = declared(
        {operation: int(wanted) if wanted.isdecimal() else _rows(Path(wanted), option)}
    )
    return one


def _rows(file: Path, option: str) -> object:
    """What a JSON file holds, or the rows of a CSV file."""
    content = text_of(file, option).removeprefix("\ufeff")  # as spreadsheets begin
    if file.suffix != ".json":
        return list(csv.DictReader(io.StringIO(content)))
    try:
        return json.loads(content)
    except ValueError as wrong:
        raise UsageError(f"{option}: {file} is not JSON: {wrong}") from wrong
