"""The line of a program's output that says why it ended.

It is not always the last one: Node.js ends with its version, Go with its goroutines, Java with
the calls that led there, and an error of several lines begins with what it is.
"""

from __future__ import annotations

import re

_ERROR = re.compile(
    r"""(?:[|+\-\s]*|Uncaught\s|Caused\sby:\s|Exception\sin\sthread\s"[^"]*"\s)
    (?:[\w.$]*(?:Error|Exception)\b[^:]*:|panic:|fatal\serror:)""",
    re.VERBOSE,
)
"""How a line begins that names an error: ``json.decoder.JSONDecodeError: ...``,
``TypeError [ERR_X]: ...``, ``panic: ...``. A line of a log that only quotes one does not.
"""

_TRACEBACK = "Traceback (most recent call last):"

_AFTERMATH = re.compile(r"Node\.js v\d|at\s.+[:)]|note: run with `RUST_BACKTRACE")
"""How a line begins that says nothing of the reason: a version, a place in code, advice."""

QUOTED_CHARACTERS = 160
"""How much of such a line a finding quotes."""

_LOCK = re.compile(r"(?:^|[._-])(?:lock|lck|lockfile|pid|pidfile)(?:$|[._-])", re.IGNORECASE)
"""What a file is called that says who is at work."""

_NAME_LEAST = 3
"""A shorter name may be a word by chance; with a dot in it it is none."""


def is_lock(path: str) -> bool:
    """Whether a file has the name of one that says who is at work."""
    return bool(_LOCK.search(path.rpartition("/")[2]))


def names(words: str, path: str) -> bool:
    """Whether ``words`` name a file: by its path or by its last part, as a word of its own."""
    name = path.rpartition("/")[2]
    if len(name) < _NAME_LEAST and "." not in name:
        return False
    return bool(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", words))


def telling_line(output: str) -> str:
    """The line of ``output`` that says most of why the program ended; empty where there is none.

    The last one that begins with an error's name, or that follows a traceback of Python, whose
    errors may have any name; else the last that is neither blank nor an aftermath. A program
    that says nothing but an aftermath gets that.
    """
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    said = [line for line in lines if not _AFTERMATH.match(line.lstrip())]
    errors = [number for number, line in enumerate(said) if _ERROR.match(line)]
    errors += _after_a_traceback(said)
    chosen = said[max(errors, default=-1)] if said else "".join(lines[-1:])
    return chosen.strip()


def _after_a_traceback(lines: list[str]) -> list[int]:
    """Where the error of the last traceback stands: on the first line that is not set in."""
    if _TRACEBACK not in lines:
        return []
    first = len(lines) - lines[::-1].index(_TRACEBACK)
    return [n for n in range(first, len(lines)) if not lines[n].startswith(" ")][:1]
