"""Checkers of other packages, through the ``chaoskit.checkers`` entry points.

A checker gets the history of a trial and what undisturbed runs do, and says which promises of its
own were broken. It is asked about every trial of every scenario, and leaves alone what it does not
know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Finding
from chaoskit.model.history import History

Checker = Callable[[History, Expectation], Iterable[Finding]]

GROUP = "chaoskit.checkers"

_KIND = re.compile(r"[a-z][a-z0-9_]*")


@lru_cache(maxsize=1)
def own_checkers() -> tuple[Checker, ...]:
    """Every checker that is installed, by name; looked for once in the life of a process.

    One that cannot be loaded is there all the same, and raises when it is asked: a trial that it
    should have judged is then UNKNOWN, as after any checker that fails.
    """
    points = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    return tuple(_loaded(point) for point in points)


def _loaded(point: EntryPoint) -> Checker:
    try:
        checker = point.load()
    except Exception as error:  # noqa: BLE001 - code of a stranger: whatever it raises
        return _failing(point.name, f"{point.value} cannot be loaded: {error}")
    if not callable(checker):
        return _failing(point.name, f"{point.value} is no function of a history and an expectation")
    return _named(point.name, checker)


def _failing(name: str, why: str) -> Checker:
    def fails(history: History, expectation: Expectation) -> Iterable[Finding]:
        raise ImportError(why)

    return _named(name, fails)


def _named(name: str, ask: Checker) -> Checker:
    """``ask`` under the name of its entry point, by which a failure is reported."""

    def checker(history: History, expectation: Expectation) -> Iterable[Finding]:
        return ask(history, expectation)

    checker.__name__ = name
    return checker


def asked(checker: Checker, history: History, expectation: Expectation) -> list[Finding]:
    """What ``checker`` finds.

    Raises:
        TypeError: it gave something that is no finding.
        ValueError: a finding of it has no name in ``kind``, or a witness that is no event.
    """
    found = list(checker(history, expectation))
    for finding in found:
        if not isinstance(finding, Finding):
            raise TypeError(f"it gave {finding!r}, not a Finding")
        if not _KIND.fullmatch(finding.kind):
            raise ValueError(f"{finding.kind!r} is no kind: use small letters, digits and _")
        if not all(0 <= index < len(history.events) for index in finding.witness):
            raise ValueError(f"the witness of {finding.kind} is not among the events")
    return found
