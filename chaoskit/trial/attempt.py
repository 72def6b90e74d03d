"""One attempt of a task: it is started, watched, perhaps killed, and comes to its end.

Everything here lives as long as the attempt. What outlives it is in the trial's state.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Mapping, Sequence
from typing import Any

from chaoskit.model.actions import PowerLoss, Twin
from chaoskit.model.errors import UsageError
from chaoskit.model.events import AttemptEnded, AttemptStarted, How, TraceNoted
from chaoskit.model.schedule import Fault
from chaoskit.model.secrets import without_secrets
from chaoskit.probe import lines, where
from chaoskit.trace import UNSEEN
from chaoskit.trace.abi import NO_TABLES, this_abi
from chaoskit.trial.beside import TAIL_CHARACTERS, overtake, run_twin
from chaoskit.trial.conduct import QUIESCE_TIMEOUT_S
from chaoskit.trial.output import Output
from chaoskit.trial.state import TrialState
from chaoskit.trial.tracing import Traced, understood
from chaoskit.trial.watch import Looker, Watch

GRACE_S = 0.5
"""How long a child may outlive the task before it is called a leftover."""

ORPHANS_GRACE_S = 5.0
"""How long processes whose leader alone was killed may go on before they are called leftovers."""

SETTLE_ROUNDS = 24
"""Rounds of the event loop after which what a held task had sent is read, applied and answered: a
new connection takes four, a mail of the SMTP door's about three a line. Tests count them."""

UNTRACED = "the kernel does not let us trace"
"""How the launcher says that a task cannot be traced: our failure, never the task's."""


class Attempt:
    """One attempt, from its start until no process of it is left.

    Attributes:
        watch: hears what services and probe say of it.
        claimed: the one that went on in the place of a paused one ended with success.
    """

    def __init__(
        self,
        state: TrialState,
        number: int,
        faults: Sequence[Fault],
        looker: Looker | None = None,
    ) -> None:
        """``looker`` looks at the attempt at its points; None: nobody does."""
        self.claimed = False
        self._state = state
        self._stage = state.stage
        self._looker = looker
        self._beside: asyncio.Future[Fault] = asyncio.get_running_loop().create_future()
        self.watch = self._watch_over(number, faults, looker)
        self._first = self.watch
        self._others: list[Watch] = []
        self._broken: Exception | None = None
        self._over = False
        self._holding: set[asyncio.Task[None]] = set()
        self._unseen = self.watch.has_company or self._stage.circumstances.runners > 1

    def _watch_over(
        self, number: int, faults: Sequence[Fault], looker: Looker | None = None
    ) -> Watch:
        stage, state = self._stage, self._state
        return Watch(
            number,
            faults,
            state.recorder,
            stage.launching,
            stage.reports.drain,
            stage.launching.hear,
            state.next_number,
            looker,
            self._beside.set_result,
        )

    async def run(self) -> AttemptEnded:
        """Live the attempt's whole life, and book its end."""
        state, stage, watch = self._state, self._stage, self._first
        state.attempts = watch.attempt
        state.recorder.add(AttemptStarted(watch.attempt, resume=watch.attempt > 1))
        stage.reports.listen(eager=bool(watch.waits))
        output = Output()
        began = time.monotonic()
        how, code, leftovers = await self._live(output)
        self._over = True
        await asyncio.gather(*self._holding)  # what was held at that moment is not looked at
        text = output.finish()
        if self._broken is not None:
            raise self._broken
        self._lose_power()
        if not all([await service.quiesce(QUIESCE_TIMEOUT_S) for service in stage.services]):
            leftovers = [*leftovers, "a process that still holds a connection to a service"]
        stage.reports.clear()
        state.collect(watch.attempt)
        for late, after in watch.late:
            state.in_flight.add(late, after)
        ended = AttemptEnded(
            attempt=watch.attempt,
            how=how,
            code=code,
            seconds=round(time.monotonic() - began, 6),
            leftovers=tuple(leftovers),
            output_bytes=output.total,
            output_tail=without_secrets(text)[-TAIL_CHARACTERS:],
            success=stage.success,
        )
        state.recorder.add(ended)
        return ended

    async def _live(self, output: Output) -> tuple[How, int, list[str]]:
        """From the start until no process is left."""
        watch, stage = self._first, self._stage
        ending, why = await stage.launching.start(
            stage.argv(watch.attempt),
            self._environment(watch),
            stage.workspace.cwd,
            output.writer,
            self._trace_request(),
            change=stage.circumstances.current,
            runners=stage.circumstances.runners,
            success=stage.success,
            shift_ns=stage.shift_ns,
        )
        if not watch.has_company:  # a twin writes to the same one
            output.started()
        if ending is None and why.startswith(UNTRACED):
            raise UsageError(f"{why}; chaoskit doctor says what works here")
        if ending is None:
            output.note(why)
            return "not-started", 127, []
        loop = asyncio.get_running_loop()
        timers = [
            loop.call_later(delay_ms / 1000, watch.land, fault) for delay_ms, fault in watch.times
        ]
        timed_out = False
        try:
            async with asyncio.timeout(self._state.conduct.timeout_s) as limit:
                status = await self._until_over(ending, output, limit)
        except TimeoutError:
            timed_out = True
            stage.launching.kill()
            status = await ending
        finally:
            stage.launching.stop_no_more()
            for timer in timers:
                timer.cancel()
        return await self._after(status, timed_out=timed_out)

    async def _after(self, status: int, *, timed_out: bool) -> tuple[How, int, list[str]]:
        """Bury what is left of the attempt, and say how it ended."""
        watch, launching = self._first, self._stage.launching
        grace_s = ORPHANS_GRACE_S if watch.leader_killed else GRACE_S
        # What a stopped task leaves goes with it, as with a container or a unit.
        gone = timed_out or watch.stopped or (watch.killed and not watch.leader_killed)
        leftovers = [] if gone else await launching.leftovers(grace_s)
        launching.kill()
        if timed_out:
            return "timeout", int(signal.SIGKILL), leftovers
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            ours: How = "killed" if watch.killed else "stopped" if watch.stopped else "signal"
            return ours, number, leftovers
        code = os.waitstatus_to_exitcode(status)
        return "stopped" if watch.stopped else "exit", code, leftovers

    async def _until_over(
        self, ending: asyncio.Future[int], output: Output, limit: asyncio.Timeout
    ) -> int:
        """The wait status of the attempt. A second runner, if there is one, lives meanwhile.

        Of twins, which are one attempt, the one that claims success counts.
        """
        either: list[asyncio.Future[Any]] = [ending, self._beside]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not self._beside.done():
            return await asyncio.shield(ending)
        launching = self._stage.launching
        if isinstance(self._beside.result().action, Twin):
            twin = self._stage.runner(self._first.attempt, self._environment(self._first))
            other = await run_twin(launching, twin, output, launching.thaw)
            status = await asyncio.shield(ending)
            claims = os.WIFEXITED(other) and os.WEXITSTATUS(other) in self._stage.success
            return other if claims else status
        limit.reschedule(None)  # the successor has a limit of its own
        await self._overtaken()
        timeout_s = self._state.conduct.timeout_s
        limit.reschedule(asyncio.get_running_loop().time() + timeout_s)
        launching.thaw()
        return await asyncio.shield(ending)

    async def _overtaken(self) -> None:
        """A paused attempt stands still: the next one lives its whole life."""
        state, stage = self._state, self._stage
        await _settle()  # what the paused one had asked for is done, and is its own
        state.attempts += 1
        after = self._watch_over(state.attempts, ())
        self._others = [self._first, after]
        self.watch = after
        state.recorder.add(AttemptStarted(state.attempts, resume=True))
        runner = stage.runner(state.attempts, self._environment(after))
        timeout_s = state.conduct.timeout_s
        ended = await overtake(stage.launching, runner, state.attempts, timeout_s)
        await _settle()
        stage.reports.drain()
        state.recorder.add(ended)
        self.claimed = ended.succeeded
        self.watch = self._first

    def _environment(self, watch: Watch) -> dict[str, str]:
        conduct, workspace = self._state.conduct, self._stage.workspace
        variables = self._stage.variables()
        lines_too = conduct.lines or any(name.startswith(lines.LINE) for name in watch.waits)
        if conduct.locating or lines_too:
            path = (where.site_folder(), variables.get("PYTHONPATH", ""))
            variables["PYTHONPATH"] = os.pathsep.join(filter(None, path))
        if conduct.locating:
            variables[where.FOLDER_VARIABLE] = str(workspace.where)
        if lines_too:
            variables[lines.LINES_VARIABLE] = "1"
        variables["CHAOSKIT_PROBE"] = str(workspace.socket)
        if watch.waits:
            variables["CHAOSKIT_PROBE_WAIT"] = ",".join(sorted(watch.waits))
        return variables

    def _trace_request(self) -> dict[str, object] | None:
        """How the attempt is traced; None: not at all."""
        conduct, watch = self._state.conduct, self._first
        if self._unseen:
            return None  # the tracer follows one runner only
        if this_abi() is None:
            self._state.recorder.add(TraceNoted(watch.attempt, UNSEEN, NO_TABLES))
            return None
        exits = self._state.durable is not None
        needed = bool(watch.calls or exits or conduct.skip_sleeps)  # else for strangers only
        return self._stage.scope.request(
            watch.calls,
            conduct.varying,
            exits=exits,
            # What changes is to be known to who looks.
            tell=conduct.calls or (needed and self._looker is not None),
            skip_sleeps=conduct.skip_sleeps,
        )

    def _lose_power(self) -> None:
        """After a fault that says so: the work folder is what a disk would have kept of it."""
        state, landed = self._state, self._first.landed
        loss = landed.action if landed is not None else None
        if isinstance(loss, PowerLoss) and state.durable is not None:
            state.durable.disks()[loss.profile].write_to(self._stage.workspace.state)
        elif not self._unseen:
            return
        state.disk_changed_unseen()

    # What the tracer says.

    def traced(self, message: Mapping[str, Any]) -> None:
        """Take a message of the tracer in."""
        state = self._state
        if "mapped" in message:
            paths = tuple(message["mapped"])
            if self._looker is not None:
                self._looker.mapped(paths)
            if state.durable is not None:
                state.durable.saw("mmap", self._ours(paths))
        elif "noted" in message:
            noted = TraceNoted(self.watch.attempt, message["noted"], message["detail"])
            state.recorder.add(noted)
        else:
            self._call(understood(message))

    def _call(self, traced: Traced) -> None:
        if traced.held:
            task = asyncio.ensure_future(self._hold(self.watch, traced))
            self._holding.add(task)
            task.add_done_callback(self._holding.discard)
        else:
            self.watch.called(traced, tell=self._state.conduct.calls)
        if self._looker is not None:
            self._looker.changed(traced.paths)

    async def _hold(self, watch: Watch, traced: Traced) -> None:
        """The task stands still at a call: look, and let it go on or not."""
        try:
            watch.held = traced
            durable = self._state.durable
            if durable is not None and traced.point.side != "before":
                paths = self._ours(traced.paths)
                durable.saw(traced.name, paths, traced.result, sync_write=traced.synced)
            await _settle()  # what it had sent lands
            if self._over:
                watch.held = None
                self._stage.launching.kill()
                return
            go_on = watch.called(traced, tell=self._state.conduct.calls)
            watch.held = None
            if go_on:
                self._stage.launching.go()
        except Exception as error:  # noqa: BLE001 - raised again where the attempt is awaited
            self._broken = error
            self._stage.launching.kill()

    def _ours(self, paths: Sequence[str]) -> tuple[str, ...]:
        """The task's paths as this process finds them."""
        return tuple(map(self._stage.workspace.ours, paths))

    async def forget_held(self) -> None:
        """Wait for what was heard of it after its end."""
        await asyncio.gather(*self._holding)

    def watch_of(self, number: int) -> Watch:
        """Whose request it is: while one attempt is paused, another one is watched over."""
        return next((w for w in self._others if w.service_of(number)), self.watch)


async def _settle() -> None:
    """Let what has been sent so far be read, applied and answered."""
    for _ in range(SETTLE_ROUNDS):
        await asyncio.sleep(0)
