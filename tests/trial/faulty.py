"""Small tasks that suffer faults, and what is read off their trials."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

import psutil

from chaoskit.model.events import AttemptEnded, AttemptStarted, FaultLanded
from chaoskit.model.history import History

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"

HEAD = f"""
import os, signal, sys, time
from pathlib import Path

sys.path.insert(0, {str(SCENARIOS)!r})
import _shop as shop

from chaoskit import Change, Scenario, probe


def charge(number, key=None):
    buyer = {{"cents": 100 * number, "email": "a@example.com", "name": "A"}}
    shop.Shop().charge(buyer, key=key)


def say(text):
    os.write(1, f"{{text}}\\n".encode())  # at once, and in one piece


def first(name="begun"):
    try:
        Path(name).open("x").close()
    except FileExistsError:
        return False
    return True

"""
"""``charge`` asks for an effect; ``first`` is true for the first process of a trial that asks."""


def scenario(body: str, more: str = "") -> str:
    """A scenario whose task runs ``body``; ``more`` are further arguments of it."""
    code = textwrap.indent(textwrap.dedent(body), "    ")
    given = 'services=("payments", "email")' + (f", {more}" if more else "")
    return f"{HEAD}\ndef main():\n{code}\n\nscenario = Scenario(task=main, {given})\n"


def ends(history: History) -> list[str]:
    """How each attempt ended, in the order of the ends."""
    return [f"{b.attempt} {b.how} {b.code}" for _, b in history.attempts]


def said(history: History, attempt: int) -> list[str]:
    """What an attempt printed, line by line."""
    return next(b.output_tail for _, b in history.attempts if b.attempt == attempt).splitlines()


def charged(history: History) -> list[tuple[int, str]]:
    """Each charge that was made: by which attempt, and how many hundred cents."""
    return [(b.attempt, dict(b.effect.fields)["amount"][:-2]) for _, b in history.effects]


def asked(history: History) -> list[int]:
    """Which attempt sent each request."""
    return [body.attempt for _, body in history.requests]


def index_of(
    history: History, kind: type[AttemptStarted | AttemptEnded | FaultLanded], attempt: int
) -> int:
    """Where the first such event of an attempt is."""
    return next(
        event.index
        for event in history.events
        if isinstance(event.body, kind) and event.body.attempt == attempt
    )


def standing() -> frozenset[int]:
    """The processes that were started before a test: servers and helpers that others share."""
    return frozenset(child.pid for child in psutil.Process().children())


def no_process_is_left(before: frozenset[int] = frozenset()) -> bool:
    """Whether all that was started since ``before`` is gone, but for multiprocessing's helper."""
    fresh = [child for child in psutil.Process().children() if child.pid not in before]
    return not [process for process in fresh if not _is_helper(process)]


def _is_helper(process: psutil.Process) -> bool:
    try:
        words: Sequence[str] = process.cmdline()
    except psutil.Error:
        return True
    return any("resource_tracker" in word for word in words)
