"""Errors, split by who has to act: the user's scenario, the user's words, or chaoskit itself.

A broken promise of the task under test is never an exception; it is a finding.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

_FIXES = {
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "free some of your quota",
    errno.EMFILE: "allow more open files (ulimit -n)",
    errno.ENFILE: "allow more open files on this machine",
    errno.EAGAIN: "allow more processes (ulimit -u)",
    errno.ENOMEM: "give it more memory",
    errno.EFBIG: "allow larger files (ulimit -f)",
}
"""What helps whatever was being done."""


class ChaoskitError(Exception):
    """Anything that stops chaoskit; ``exit_code`` is what the command line ends with."""

    exit_code = 3


class UsageError(ChaoskitError):
    """The words given to chaoskit do not name something that exists, or do not parse."""

    exit_code = 2


class ScenarioError(UsageError):
    """The scenario as written cannot be run: something is missing or contradicts itself."""


class FormatError(UsageError):
    """A stored or pasted text is of another format version, or damaged."""


class HarnessError(ChaoskitError):
    """chaoskit itself could not do its part; says nothing about the task."""

    exit_code = 3


def described(error: OSError | MemoryError) -> str:
    """What the machine did not allow: where, why, and what helps if that is known."""
    if isinstance(error, MemoryError):
        return f"there is not enough memory: {_FIXES[errno.ENOMEM]}"
    where = f"{error.filename}: " if error.filename else ""
    fix = _FIXES.get(error.errno or 0)
    return f"{where}{error.strerror or error}" + (f"; {fix}" if fix else "")


@contextmanager
def naming(place: object, what: str, fix: str = "") -> Iterator[None]:
    """Tell of a file or folder that the user named, and that cannot be used.

    Args:
        place: which one.
        what: is wrong with it, as in "cannot be written".
        fix: what to do; by default what helps against such an error, if that is known.

    Raises:
        UsageError: in place of an `OSError` of the block.
    """
    try:
        yield
    except OSError as error:
        help_ = fix or _FIXES.get(error.errno or 0, "")
        why = error.strerror or str(error)
        raise UsageError(f"{place} {what}: {why}" + (f"; {help_}" if help_ else "")) from error


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The valid names that are most like ``name``; some of them where none is alike."""
    names = sorted(set(known))
    return get_close_matches(name, names, n=3, cutoff=0.4) or names[:6]


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """A `UsageError` that names the nearest valid names.

    Args:
        kind: what was looked for, in the singular ("scenario", "point").
        name: what the user wrote.
        known: every valid name.
    """
    near = nearest(name, known)
    if not near:
        return UsageError(f"unknown {kind} {name!r}: there are none")
    return UsageError(f"unknown {kind} {name!r}; nearest: {', '.join(near)}")
