"""Errors, split by who has to act: the user's scenario, the user's words, or chaoskit itself.

A broken promise of the task under test is never an exception; it is a finding.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


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
