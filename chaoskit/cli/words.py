"""Words of options that several commands read in the same way."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from chaoskit.checkers.comparison import counted
from chaoskit.model.declared import Declared, declared
from chaoskit.model.durations import parse_duration
from chaoskit.model.errors import UsageError, naming, unknown_name
from chaoskit.model.pasted import read_schedule


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


def known_schedule(kind: str, text: str, known: Collection[str]) -> str:
    """The schedule among ``known`` that ``text`` names, in any form that a report prints.

    Args:
        kind: what it is the schedule of, in the singular.
        text: what the user wrote.
        known: every valid schedule.

    Raises:
        UsageError: there is no such one; the message names the nearest ones.
    """
    with suppress(UsageError):
        if (wanted := str(read_schedule(text))) in known:
            return wanted
    raise unknown_name(kind, text, known)


def exit_codes(text: str, option: str) -> tuple[int, ...]:
    """The exit codes of a comma-separated list.

    Raises:
        UsageError: one of them is no number from 0 to 255, or there is none.
    """
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() and int(word) <= 255 for word in words):
        raise UsageError(f"{option} takes exit codes from 0 to 255, as in 0,101; not {text!r}")
    return tuple(dict.fromkeys(map(int, words)))


def read_declared(text: str) -> Declared:
    """What ``OPERATION=NUMBER`` or ``OPERATION=FILE`` says; the file is CSV with a header, or JSON.

    Raises:
        UsageError: it says neither, or the file cannot be read.
    """
    option = "--expect"
    operation, wanted = pair(text, option)
    if not wanted:
        raise UsageError(f"{option} takes OPERATION=NUMBER or OPERATION=FILE, not {text!r}")
    if wanted.isdecimal():
        (one,) = declared({operation: int(wanted)})
        return one
    (one,) = declared({operation: _rows(Path(wanted), option)})
    return msgspec.structs.replace(one, origin=f"{option} {wanted}")


def _rows(file: Path, option: str) -> object:
    """What a JSON file holds, or the rows of a CSV file."""
    content = text_of(file, option).removeprefix("\ufeff")  # as spreadsheets begin
    if file.suffix != ".json":
        return _csv_rows(content, f"{option} {file}")
    try:
        return json.loads(content)
    except ValueError as wrong:
        raise UsageError(f"{option}: {file} is not JSON: {wrong}") from wrong


def _csv_rows(content: str, place: str) -> list[dict[str, str]]:
    """The rows of a CSV text, each with the names of the header; empty lines are skipped.

    Raises:
        UsageError: the header has no names, or one twice; or a row has more or fewer cells.
    """
    lines = csv.reader(io.StringIO(content, newline=""), strict=True)
    try:
        header = next(lines, [])
        _check_header(header, f"{place}, line 1")
        rows = []
        for cells in filter(None, lines):
            if len(cells) != len(header):
                raise UsageError(
                    f"{place}, line {lines.line_num}: {counted(len(cells), 'cell')}, and the "
                    f"header has {len(header)} ({', '.join(header)}); fill each cell, and put "
                    "quotes around one that holds a comma"
                )
            rows.append(dict(zip(header, cells, strict=True)))
    except csv.Error as wrong:
        raise UsageError(
            f"{place}, line {lines.line_num}: {wrong}; look for a quote that is not closed"
        ) from wrong
    return rows


def _check_header(header: Sequence[str], place: str) -> None:
    names = "the first line names the fields, as in customer,amount"
    if not any(map(str.strip, header)):
        raise UsageError(f"{place} is empty: {names}")
    if blank := [number for number, name in enumerate(header, 1) if not name.strip()]:
        raise UsageError(f"{place}: column {blank[0]} has no name; {names}")
    if twice := [name for name in header if header.count(name) > 1]:
        raise UsageError(f"{place} names {twice[0]!r} twice: give each column its own name")
    if len(header) == 1 and set(header[0]) & set(";\t"):
        raise UsageError(f"{place} is one name, {header[0]!r}: put commas between the columns")
