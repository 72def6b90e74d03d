"""A program's last line: a legal end of a run becomes a message and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import NoReturn

from chaoskit.runtime.errors import OutcomeUnknown, Refused, Replanned, announced

REPLANS_MAX = 10
"""A plan that is still another one after so many times is not going to hold."""


def run_main(function: Callable[[], object]) -> None:
    """Call ``function``; turn a legal end into a message on standard error and an exit code.

    A refusal ends the process with 75, an unknown outcome with 76; what ``function`` returns is
    dropped, and any other exception propagates. A re-plan calls the function again.

    Args:
        function: the whole program, without arguments. A group of nothing but legal ends, as
            ``asyncio.TaskGroup`` raises, counts as one of them; an unknown outcome outranks a
            refusal, because it needs a person.
    """
    try:
        _planned(function)
    except (Refused, OutcomeUnknown) as end:
        _end([end])
    except BaseExceptionGroup as group:
        legal, other = group.split((Refused, OutcomeUnknown))
        if legal is None or other is not None:
            raise
        _end(list(_leaves(legal)))


def _planned(function: Callable[[], object]) -> None:
    """Call ``function`` until its plan holds."""
    for _ in range(REPLANS_MAX):
        try:
            function()
        except Replanned as again:
            sys.stderr.write(f"{again}\n")
            last = again
        else:
            return
    raise announced(
        Refused(
            f"{last.pin!r} changed {REPLANS_MAX} times while this ran, and the plan with it: wait "
            "until it holds still, then resume"
        )
    )


def _end(ends: list[BaseException]) -> NoReturn:
    for end in ends:
        if isinstance(end, Refused | OutcomeUnknown) and not end.told:
            announced(end)
        sys.stderr.write(f"{end}\n")
    unknown = any(isinstance(end, OutcomeUnknown) for end in ends)
    sys.exit(OutcomeUnknown.exit_code if unknown else Refused.exit_code)


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
