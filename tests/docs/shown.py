"""What a page shows, as a reader would do it: files to save, changes to make, commands to type.

A fenced block is meant for a file where the line before it ends with the file's name, as in
"Save this as `bill.py`:". A block of `diff` is a change to that file. In a block of `console` a
line that begins with `$ ` is a command, up to the next line that does not end with a backslash;
what follows it is what it prints. Other blocks are for the eye.

Compared are the words: white space and the width of lines count for nothing, each number stands
for any number, and `…` for anything at all; what is only said because time has passed, which is up
to the machine, is left out. A replay token is copied from what was printed last,
as a reader does, where a command has `ck1-…`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`([\w./-]+)`:\s*\Z")
_TOKEN = re.compile(r"ck1-[\w-]{9,}")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_WAITING = re.compile(
    r"^ *(?:two undisturbed runs, \d+ s so far .*"
    r"|\d+(?: of \d+)? trials(?: in \d+ of \d+ s)?, \d+\.\d/s.*)\n",
    re.MULTILINE,
)
"""What a command says every ten seconds, that nobody looks at a silent terminal for minutes."""
_RUN = re.compile(r"\d{4}-\d\d-\d\dT[\d-]+-([\w-]+)-[0-9a-f]{4}\b")


@dataclass(frozen=True)
class Save:
    """A whole file."""

    file: str
    text: str


@dataclass(frozen=True)
class Change:
    """Lines of a file: those there, and those in their place."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Command:
    """A line for the shell, and what it prints."""

    line: str
    shown: str


Deed = Save | Change | Command


def deeds(page: str) -> Iterator[Deed]:
    """What there is to do on ``page``, in its order."""
    for block in _FENCE.finditer(page):
        language, text = block[1], block[2]
        named = _FILE.search(page[: block.start()])
        if language == "console":
            yield from _commands(text)
        elif language == "diff":
            assert named, f"no file is named before the change:\n{text}"
            lines = [line for line in text.splitlines(keepends=True) if line.strip() != "…"]
            old = "".join(line[1:] or "\n" for line in lines if line[0] != "+")
            new = "".join(line[1:] or "\n" for line in lines if line[0] != "-")
            yield Change(named[1], old, new)
        elif named and language:
            yield Save(named[1], text)


def _commands(text: str) -> Iterator[Command]:
    lines = text.splitlines()
    while lines:
        line = lines.pop(0)
        assert line.startswith("$ "), f"a block of console begins with a command, not {line!r}"
        while line.endswith("\\"):
            line = f"{line}\n{lines.pop(0)}"
        shown = []
        while lines and not lines[0].startswith("$ "):
            shown.append(lines.pop(0))
        yield Command(line[2:], "\n".join(shown))


def shell() -> dict[str, str]:
    """The environment of a reader: this interpreter's programs first, no colour.

    Lines are wide, so that none is broken within a word, as long paths of test folders would be.
    """
    ours = {k: v for k, v in os.environ.items() if not k.startswith(("CHAOSKIT_", "PYTEST_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{ours['PATH']}"
    return {**ours, "PATH": path, "NO_COLOR": "1", "COLUMNS": "400", "PYTHONPATH": str(ROOT)}


def told(
    page: str, folder: Path, environment: Mapping[str, str], said: str = ""
) -> tuple[str, str]:
    """Do all that ``page`` says in ``folder``, up to the first thing that is not as shown.

    Args:
        page: its text.
        folder: where the reader is.
        environment: of the shell.
        said: what was printed before, on the pages before this one.

    Returns:
        What was printed so far, and what is not as shown; empty where all is.
    """
    status = 0
    for deed in deeds(page):
        if isinstance(deed, Save):
            (folder / deed.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / deed.file).write_text(deed.text, encoding="utf-8")
        elif isinstance(deed, Change):
            changed = folder / deed.file
            text = changed.read_text(encoding="utf-8") if changed.is_file() else ""
            if text.count(deed.old) != 1:
                return said, f"{deed.file} does not have once:\n{deed.old}\nIt has:\n{text}"
            changed.write_text(text.replace(deed.old, deed.new), encoding="utf-8")
        else:
            done = subprocess.run(
                ["bash", "-c", f"(exit {status})\n{_with_token(deed.line, said)}"],
                cwd=folder, env=dict(environment), text=True, check=False,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            status, said = done.returncode, said + done.stdout
            if problem := difference(deed.shown, _WAITING.sub("", done.stdout)):
                return said, f"$ {deed.line}\n{problem}\nIt printed:\n{done.stdout}"
    return said, ""


def _with_token(line: str, said: str) -> str:
    """The command with the token that was printed last in place of ``ck1-…``."""
    if "ck1-…" not in line:
        return line
    found = _TOKEN.findall(said)
    assert found, f"no replay token was printed before: {line}"
    return line.replace("ck1-…", found[-1])


def difference(shown: str, printed: str) -> str:
    """The first words of ``shown`` that ``printed`` does not have in their place; empty: it has."""
    parts = [_words(part) for part in shown.split("…")]
    text = _words(printed)
    if re.fullmatch(".*".join(map(re.escape, parts)), text):
        return ""
    for number in range(len(parts), 0, -1):
        if re.match(".*".join(map(re.escape, parts[: number - 1])), text):
            return f"It does not have in this place:\n{parts[number - 1]}"
    raise AssertionError("no text at all is always there")


def _words(text: str) -> str:
    text = _TOKEN.sub("ck1-", _RUN.sub(r"\1", text))
    return " ".join(_NUMBER.sub("0", text).split())


def pages(folder: Path) -> Sequence[Path]:
    """The chapters of ``folder`` in their order; their names begin with a number."""
    return sorted(folder.glob("[0-9]*.md"), key=lambda page: int(page.stem.split("-")[0]))
