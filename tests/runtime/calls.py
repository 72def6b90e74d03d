"""Calls of steps that many tests of the runtime give: one that must not be made, one that dies."""

from __future__ import annotations

from typing import Any, NoReturn

from chaoskit.runtime import Effect


class Stopped(BaseException):
    """Stands for a kill: nothing that a task catches."""


def never(effect: Effect) -> Any:
    """A call that must not be made."""
    raise AssertionError(f"{effect.step} was called again")


def stop(effect: Effect) -> NoReturn:
    """A call during which the process ends."""
    raise Stopped(effect.step)
