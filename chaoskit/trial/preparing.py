"""What is done before the first attempt of a trial: a command that makes the starting state."""

from __future__ import annotations

import asyncio
import os
import shlex

from chaoskit.model.errors import ScenarioError
from chaoskit.model.last_words import telling_line
from chaoskit.model.secrets import without_secrets
from chaoskit.trial.beside import Runner
from chaoskit.trial.conduct import FIRST_TIMEOUT_S
from chaoskit.trial.launching import Launching
from chaoskit.trial.output import Output
from chaoskit.trial.tracing import TraceScope


async def prepare(launching: Launching, runner: Runner, scope: TraceScope) -> None:
    """Run a command to its end; what it leaves running is killed.

    Args:
        launching: starts it.
        runner: how.
        scope: whom it may reach.

    Raises:
        ScenarioError: it cannot be started, fails, or takes longer than `FIRST_TIMEOUT_S`.
    """
    output = Output()
    try:
        how = await _end_of(launching, runner, scope, output)
    finally:
        text = output.finish()
    if how:
        words = telling_line(without_secrets(text))
        said = f"; its last words: {words}" if words else ""
        command = without_secrets(shlex.join(runner.argv or ()))
        raise ScenarioError(
            f"the command of prepare, `{command}`, {how}{said}. No trial can begin before it ends "
            "with status 0"
        )


async def _end_of(launching: Launching, runner: Runner, scope: TraceScope, output: Output) -> str:
    """What is wrong with how it ended; empty: nothing."""
    ending, why = await launching.start(
        runner.argv,
        runner.variables,
        runner.cwd,
        output.writer,
        scope.request((), exits=False, tell=False, skip_sleeps=False),
        shift_ns=runner.shift_ns,
    )
    output.started()
    if ending is None:
        return f"cannot be started: {why}"
    try:
        async with asyncio.timeout(FIRST_TIMEOUT_S):
            status = await asyncio.shield(ending)
    except TimeoutError:
        launching.kill()
        await ending
        return f"did not end within {FIRST_TIMEOUT_S:.0f} s"
    launching.kill()
    if os.WIFSIGNALED(status):
        return f"was ended by signal {os.WTERMSIG(status)}"
    code = os.waitstatus_to_exitcode(status)
    return f"ended with status {code}" if code else ""
