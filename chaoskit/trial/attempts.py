"""Trials by real kills: the attempts of a task one after the other, and what is heard of them.

This is where the order of events is owned: the services and the tracer are heard on one event loop,
and one recorder numbers everything.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Self

from chaoskit.model.effects import Effect
from chaoskit.model.errors import UsageError
from chaoskit.model.events import (
    AttemptEnded,
    AttemptStarted,
    EffectApplied,
    How,
    RequestReceived,
    ResumeBounded,
    StateObserved,
    TraceNoted,
)
from chaoskit.model.history import History
from chaoskit.model.hosting import RequestInfo
from chaoskit.model.preludes import Clock
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.model.secrets import without_secrets
from chaoskit.probe import lines, where
from chaoskit.trial.beside import TAIL_CHARACTERS, overtake, run_twin
from chaoskit.trial.horizon import Horizon, rest
from chaoskit.trial.in_flight import InFlight, LateRequest
from chaoskit.trial.loading import Loaded
from chaoskit.trial.output import Output
from chaoskit.trial.power import Durable
from chaoskit.trial.recorder import Recorder
from chaoskit.trial.reports import Message
from chaoskit.trial.stage import Stage
from chaoskit.trial.tracing import Traced, understood
from chaoskit.trial.watch import Stops, Watch

GRACE_S = 0.5
"""How long a child may outlive the task before it is called a leftover."""

ORPHANS_GRACE_S = 5.0
"""How long processes whose leader alone was killed may go on before they are called leftovers."""

SETTLE_ROUNDS = 24
"""Rounds of the event loop after which what a held task had sent is read, applied and answered: a
new connection takes four, a mail of the SMTP door's about three a line. Tests count them."""

QUIESCE_TIMEOUT_S = 5.0
FIRST_TIMEOUT_S = 300.0

UNTRACED = "the kernel does not let us trace"
"""How the launcher says that a task cannot be traced: our failure, never the task's."""


class Attempts:
    """One scenario, ready to be run again and again. Use as an asynchronous context manager."""

    def __init__(self, loaded: Loaded, seed: int, work_root: Path | None = None) -> None:
        self._stage = Stage(loaded, seed, work_root)
        self._scenario = loaded.scenario
        self._watch: Watch | None = None
        self._recorder = Recorder()
        self.own_timeout_s = loaded.scenario.timeout_s
        self.timeout_s = self.own_timeout_s or FIRST_TIMEOUT_S
        self.tracing = False
        self.skip_sleeps = False
        self.lines = False
        self._held: Traced | None = None
        self._changed: set[str] | None = None
        self._mapped: set[str] = set()
        self._horizon: Horizon | None = None
        self._durable: Durable | None = None
        self._locating = False
        self._leader = 0
        self._in_flight = InFlight(self._land)
        self._broken: Exception | None = None
        self._over = self._leaving = False
        self._holding: set[asyncio.Task[None]] = set()
        self._beside: asyncio.Future[Fault] | None = None
        self._others: list[Watch] = []
        self._claimed = self._unseen = False
        self._attempts = 0

    async def __aenter__(self) -> Self:
        await self._stage.set_up(self, self._heard, self._traced)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stage.tear_down()

    # One trial.

    async def run(self, schedule: Schedule, horizon: Horizon | None = None) -> History:
        """Run ``schedule`` to its end: attempts until the task ends by itself or a bound is met.

        With a ``horizon`` the last resume is followed only as far as that says.
        """
        self._begin()
        self._stage.circumstances.check(schedule)
        if any(fault.is_power for faults in schedule.attempts for fault in faults):
            self._durable = Durable(self._stage.workspace.state)
        return await self._followed(1, schedule, horizon)

    async def _followed(self, attempt: int, schedule: Schedule, horizon: Horizon | None) -> History:
        self._horizon = horizon
        try:
            return await self._go_on(attempt, schedule)
        finally:
            self._horizon = self._durable = None

    def _begin(self, seed_shift: int = 0) -> None:
        """An empty world."""
        self._recorder = Recorder()
        self._numbers = count(1)
        self._in_flight = InFlight(self._land)
        self._durable = None
        self._stage.reset(seed_shift)

    async def _go_on(self, attempt: int, schedule: Schedule, stops: Stops | None = None) -> History:
        """Attempts from ``attempt`` on; the first one without a fault may have ``stops``."""
        failures = 0
        while True:
            faults = schedule.faults_of(attempt)
            watched = stops if attempt == len(schedule.attempts) + 1 else None
            ended = await self._attempt(attempt, faults, watched)
            if ended is None:
                return self._with_the_rest(attempt)
            attempt = self._attempts + 1
            if self._claimed:
                break  # by the one that went on in the place of a paused one, which is over too
            if ended.how in {"killed", "stopped"}:
                continue
            if self._is_final(ended) or (ended.how == "timeout" and not schedule.attempts):
                break  # an undisturbed run that does not end would not end the next time either
            failures += 1
            if failures >= self._scenario.attempts_max:
                break
        self._all_lands()
        if self._scenario.outputs:
            self._recorder.add(StateObserved(self._stage.workspace.digests(self._scenario.outputs)))
        return self._recorder.history()

    def _all_lands(self) -> None:
        """What is still under way arrives, or is carried out."""
        self._in_flight.end()
        self._stage.end()

    def _with_the_rest(self, attempt: int) -> History:
        """The history of a resume that was followed as far as its horizon."""
        horizon = self._horizon
        assert horizon is not None
        assert horizon.cut is not None
        events = self._recorder.history().events
        for body in rest(horizon.undisturbed, horizon.cut, events, attempt):
            self._recorder.add(body)
        return self._recorder.history()

    def _is_final(self, ended: AttemptEnded) -> bool:
        if ended.how == "not-started" or (ended.how, ended.code) == ("exit", 0):
            return True
        return self._recorder.history().stated_end is not None

    async def _attempt(
        self, attempt: int, faults: Sequence[Fault], stops: Stops | None = None
    ) -> AttemptEnded | None:
        """One attempt to its end; None: to its horizon."""
        self._attempts = attempt
        self._watch = None
        preludes = [fault for fault in faults if fault.is_prelude]
        if any(isinstance(fault.prelude, Clock) for fault in preludes):
            self._all_lands()  # nothing is under way for as long as clocks are moved by
        await self._stage.before(attempt, preludes, self._recorder)
        await asyncio.gather(*self._holding)  # heard of after the end: of the attempt before, still
        self._beside = asyncio.get_running_loop().create_future()
        self._watch = self._watch_over(attempt, faults, stops, self._beside.set_result)
        self._others, self._claimed = [], False
        self._recorder.add(AttemptStarted(attempt, resume=attempt > 1))
        self._stage.reports.listen(eager=bool(self._watch.waits))
        self._held, self._broken = None, None
        output = Output()
        began = time.monotonic()
        self._over = self._leaving = False
        how, code, leftovers = await self._live(attempt, output)
        self._over = True
        await asyncio.gather(*self._holding)  # what was held at that moment is not looked at
        text = output.finish()
        if self._broken is not None:
            raise self._broken
        self._lose_power()
        if not all([await service.quiesce(QUIESCE_TIMEOUT_S) for service in self._stage.services]):
            leftovers = [*leftovers, "a process that still holds a connection to a service"]
        self._stage.reports.clear()
        if self._horizon is None or self._horizon.cut is None:
            self._collect(attempt)
        for late, after in self._watch.late:
            self._in_flight.add(late, after)
        if self._horizon is not None and self._horizon.cut is not None:
            return None
        ended = AttemptEnded(
            attempt=attempt,
            how=how,
            code=code,
            seconds=round(time.monotonic() - began, 6),
            leftovers=tuple(leftovers),
            output_bytes=output.total,
            output_tail=without_secrets(text)[-TAIL_CHARACTERS:],
        )
        self._recorder.add(ended)
        return ended

    async def _live(self, attempt: int, output: Output) -> tuple[How, int, list[str]]:
        """The attempt's life, from its start until no process of it is left."""
        watch = self._watch
        assert watch is not None
        ending, why = await self._stage.launching.start(
            self._stage.argv(attempt),
            self._environment(watch),
            self._stage.workspace.state,
            output.writer,
            self._trace_request(watch),
            change=self._stage.circumstances.current,
            runners=self._stage.circumstances.runners,
        )
        if not watch.has_company:  # a twin writes to the same one
            output.started()
        self._leader = self._stage.launching.leader
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
            async with asyncio.timeout(self.timeout_s) as limit:
                status = await self._until_over(ending, watch, output, limit)
        except TimeoutError:
            timed_out = True
            self._stage.launching.kill()
            status = await ending
        finally:
            self._stage.launching.stop_no_more()
            for timer in timers:
                timer.cancel()
        grace_s = ORPHANS_GRACE_S if watch.leader_killed else GRACE_S
        # What a stopped task leaves goes with it, as with a container or a unit.
        gone = timed_out or watch.stopped or (watch.killed and not watch.leader_killed)
        leftovers = [] if gone else await self._stage.launching.leftovers(grace_s)
        self._stage.launching.kill()
        if timed_out:
            return "timeout", int(signal.SIGKILL), leftovers
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            ours: How = "killed" if watch.killed else "stopped" if watch.stopped else "signal"
            return ours, number, leftovers
        code = os.waitstatus_to_exitcode(status)
        return "stopped" if watch.stopped else "exit", code, leftovers

    async def _until_over(
        self, ending: asyncio.Future[int], watch: Watch, output: Output, limit: asyncio.Timeout
    ) -> int:
        """The wait status of an attempt; a second runner lives its life meanwhile, if there is one.

        Of twins, which are one attempt, the one that claims success counts.
        """
        assert self._beside is not None
        either: list[asyncio.Future[Any]] = [ending, self._beside]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not self._beside.done():
            return await asyncio.shield(ending)
        launching = self._stage.launching
        if self._beside.result().action == "twin":
            twin = self._stage.runner(watch.attempt, self._environment(watch))
            claims_success = await run_twin(launching, twin, output, launching.thaw)
            status = await asyncio.shield(ending)
            return 0 if claims_success else status
        limit.reschedule(None)  # the successor has a limit of its own
        await self._overtaken(watch)
        limit.reschedule(asyncio.get_running_loop().time() + self.timeout_s)
        launching.thaw()
        return await asyncio.shield(ending)

    async def _overtaken(self, watch: Watch) -> None:
        """A paused attempt stands still: the next one lives its whole life."""
        await _settle()  # what the paused one had asked for is done, and is its own
        self._attempts += 1
        after = self._watch_over(self._attempts, ())
        self._others = [watch, after]
        self._watch = after
        self._recorder.add(AttemptStarted(self._attempts, resume=True))
        runner = self._stage.runner(self._attempts, self._environment(after))
        ended = await overtake(self._stage.launching, runner, self._attempts, self.timeout_s)
        await _settle()
        self._stage.reports.drain()
        self._recorder.add(ended)
        self._claimed = (ended.how, ended.code) == ("exit", 0)
        self._watch = watch

    def _watch_over(
        self,
        attempt: int,
        faults: Sequence[Fault],
        stops: Stops | None = None,
        beside: Callable[[Fault], None] = lambda _: None,
    ) -> Watch:
        return Watch(
            attempt,
            faults,
            self._recorder,
            self._stage.launching,
            self._stage.reports.drain,
            self._stage.launching.hear,
            self._numbers,
            stops,
            beside,
        )

    def _environment(self, watch: Watch) -> dict[str, str]:
        variables = self._stage.variables()
        lines_too = self.lines or any(name.startswith(lines.LINE) for name in watch.waits)
        if self._locating or lines_too:
            path = (where.site_folder(), variables.get("PYTHONPATH", ""))
            variables["PYTHONPATH"] = os.pathsep.join(filter(None, path))
        if self._locating:
            variables[where.FOLDER_VARIABLE] = str(self._stage.workspace.where)
        if lines_too:
            variables[lines.LINES_VARIABLE] = "1"
        variables["CHAOSKIT_PROBE"] = str(self._stage.workspace.socket)
        if watch.waits:
            variables["CHAOSKIT_PROBE_WAIT"] = ",".join(sorted(watch.waits))
        return variables

    def _lose_power(self) -> None:
        """After a fault that says so: the work folder is what a disk would have kept of it."""
        landed = self._watch.landed if self._watch is not None else None
        if landed is not None and landed.is_power and self._durable is not None:
            self._durable.disks()[landed.profile].write_to(self._stage.workspace.state)
        elif self._durable is None or not self._unseen:
            return
        self._durable = Durable(self._stage.workspace.state)  # what nobody followed counts as kept

    def _trace_request(self, watch: Watch) -> dict[str, object] | None:
        """How this attempt is traced; None: not at all."""
        exits = self._durable is not None
        self._unseen = watch.has_company or self._stage.circumstances.runners > 1
        if self._unseen:
            return None  # the tracer follows one runner only
        if not (watch.calls or self.tracing or exits or self.skip_sleeps):
            return None
        return self._stage.scope.request(
            watch.calls,
            exits=exits,
            tell=self.tracing or watch.looked_at,  # what changes is to be known
            skip_sleeps=self.skip_sleeps,
        )

    # What the tracer says.

    def _traced(self, message: Mapping[str, Any]) -> None:
        if "mapped" in message:
            self._mapped.update(message["mapped"])
            if self._durable is not None:
                self._durable.saw("mmap", tuple(message["mapped"]))
        elif "noted" in message:
            attempt = self._watch.attempt if self._watch is not None else 0
            self._recorder.add(TraceNoted(attempt, message["noted"], message["detail"]))
        elif self._watch is not None:
            traced = understood(message)
            if traced.held:
                task = asyncio.ensure_future(self._hold(self._watch, traced))
                self._holding.add(task)
                task.add_done_callback(self._holding.discard)
            else:
                self._watch.called(traced, tell=self.tracing)
            if self._changed is not None:
                self._changed.update(traced.paths)

    async def _hold(self, watch: Watch, traced: Traced) -> None:
        """The task stands still at a call: look, and let it go on or not."""
        try:
            self._held = traced
            if self._durable is not None and traced.point.side != "before":
                self._durable.saw(
                    traced.name, traced.paths, traced.result, sync_write=traced.synced
                )
            await _settle()  # what it had sent lands
            if self._over or (self._leaving and traced.point.side == "before"):
                self._held = None
                self._stage.launching.kill()
                return
            go_on = watch.called(traced, tell=self.tracing)
            self._held = None
            if go_on:
                self._stage.launching.go()
        except Exception as error:  # noqa: BLE001 - raised again where the attempt is awaited
            self._broken = error
            self._stage.launching.kill()

    def _land(self, late: LateRequest) -> None:
        """A request that was in flight when its sender died arrives now."""
        for effect in late.land():
            self._recorder.add(
                EffectApplied(attempt=late.attempt, effect=effect, request=late.number)
            )

    def _collect(self, attempt: int) -> None:
        for service in self._stage.services:
            for effect in service.collect():
                self._recorder.add(EffectApplied(attempt=attempt, effect=effect))

    # What services and tasks say goes to the watch over the attempt that is running.

    def _heard(self, message: Message) -> bool:
        return self._watch is not None and self._watch.heard(message)

    def received(self, request: RequestInfo) -> int | None:
        """See `chaoskit.model.hosting.Observer`; a request outside an attempt is nobody's."""
        number = None if self._watch is None else self._watch.received(request)
        return None if number is None or self._may_end() else number

    def _may_end(self) -> bool:
        """Whether this attempt need not be followed any more; it is then dead."""
        horizon, watch = self._horizon, self._watch
        if horizon is None or watch is None or watch.killed or watch.has_faults or self._in_flight:
            return False
        if self._leaving or self._stage.postponed:
            return False
        events = self._recorder.history().events
        request = events[-1].body
        if not isinstance(request, RequestReceived) or not horizon.looks(
            request, events, self._stage.world.glance
        ):
            return False
        if horizon.how == "noted":
            self._recorder.add(ResumeBounded(watch.attempt, followed=True))
            self._horizon = None
            return False
        if horizon.how == "gently":  # the points around this request are still to be looked at
            self._leaving = True
            return False
        self._stage.launching.kill()
        return True

    def _watch_of(self, number: int) -> Watch | None:
        """Whose request it is: while one attempt is paused, another one is watched over."""
        return next((w for w in self._others if w.service_of(number)), self._watch)

    def applied(self, number: int, effects: Sequence[Effect]) -> bool:
        """See `chaoskit.model.hosting.Observer`."""
        watch = self._watch_of(number)
        alive = watch is not None and watch.applied(number, effects)
        if watch is not None:
            self._in_flight.passed(watch.service_of(number))
        return alive

    def answering(self, number: int) -> None:
        """See `chaoskit.model.hosting.Observer`."""
        if (watch := self._watch_of(number)) is not None:
            watch.answering(number)

    def answered(self, number: int, status: int, *, deduped: bool, delivered: bool) -> None:
        """See `chaoskit.model.hosting.Observer`."""
        if (watch := self._watch_of(number)) is not None:
            watch.answered(number, status, deduped=deduped, delivered=delivered)

    def landed(self, number: int, effects: Sequence[Effect]) -> None:
        """See `chaoskit.model.hosting.Observer`; it may be a request of an earlier attempt."""
        if self._watch is not None:
            self._watch.moved += 1
        sent = (e.body for e in self._recorder.history().events)
        attempt = next(
            (b.attempt for b in sent if isinstance(b, RequestReceived) and b.request == number),
            0,  # one that was left out
        )
        for effect in effects:
            self._recorder.add(EffectApplied(attempt=attempt, effect=effect, request=number))


async def _settle() -> None:
    """Let what has been sent so far be read, applied and answered."""
    for _ in range(SETTLE_ROUNDS):
        await asyncio.sleep(0)
