"""A second runner beside the first one: it is started, and comes to its end by itself.

A paused task is overtaken by its successor (a zombie, once it goes on); a twin runs at the same
time. What the second one leaves is not looked for: the first one is still there.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from chaoskit.model.events import SUCCESS, AttemptEnded, How
from chaoskit.model.secrets import without_secrets
from chaoskit.trial.launching import Launching
from chaoskit.trial.output import Output

TAIL_CHARACTERS = 4000


class Runner(NamedTuple):
    """How a second runner is started: see `Launching.start`."""

    argv: list[str] | None
    variables: Mapping[str, str]
    cwd: str
    change: str = ""
    shift_ns: int = 0
    success: tuple[int, ...] = SUCCESS


async def overtake(
    launching: Launching, runner: Runner, attempt: int, timeout_s: float
) -> AttemptEnded:
    """Start the successor of a task that stands still, and wait for its end.

    Args:
        launching: starts it.
        runner: how.
        attempt: its number.
        timeout_s: it is killed when it takes longer.

    Returns:
        How it ended, as an attempt of its own.
    """
    output = Output()
    began = time.monotonic()
    try:
        ending, why = await _start(launching, runner, output)
        output.started()
        how: How
        if ending is None:
            output.note(why)
            how, code = "not-started", 127
        else:
            how, code = await _end_of(launching, ending, timeout_s)
    finally:
        text = output.finish()
    return AttemptEnded(
        attempt=attempt,
        how=how,
        code=code,
        seconds=round(time.monotonic() - began, 6),
        output_bytes=output.total,
        output_tail=without_secrets(text)[-TAIL_CHARACTERS:],
        success=runner.success,
    )


async def run_twin(
    launching: Launching, runner: Runner, output: Output, started: Callable[[], None]
) -> int:
    """Start a second process of an attempt, and wait for its end.

    Args:
        launching: starts it.
        runner: how.
        output: of the attempt; both write to it.
        started: is called when it is there.

    Returns:
        Its wait status; that of a killed one where it cannot be started.
    """
    ending, why = await _start(launching, runner, output)
    started()
    if ending is None:
        output.note(why)
        return int(signal.SIGKILL)
    return await asyncio.shield(ending)


async def _start(
    launching: Launching, runner: Runner, output: Output
) -> tuple[asyncio.Future[int] | None, str]:
    return await launching.start(
        runner.argv,
        runner.variables,
        runner.cwd,
        output.writer,
        change=runner.change,
        beside=True,
        shift_ns=runner.shift_ns,
    )


async def _end_of(
    launching: Launching, ending: asyncio.Future[int], timeout_s: float
) -> tuple[How, int]:
    try:
        async with asyncio.timeout(timeout_s):
            status = await asyncio.shield(ending)
    except TimeoutError:
        launching.kill_beside()
        await ending
        return "timeout", int(signal.SIGKILL)
    if os.WIFSIGNALED(status):
        return "signal", os.WTERMSIG(status)
    return "exit", os.waitstatus_to_exitcode(status)
