"""One trial: the attempts of a task one after the other, and what was seen of them.

The services and the tracer are heard on one event loop, and one recorder numbers everything: this
is what owns the order of events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from chaoskit.model.effects import Effect
from chaoskit.model.events import AttemptEnded, EffectApplied, RequestReceived
from chaoskit.model.history import History
from chaoskit.model.hosting import RequestInfo
from chaoskit.model.preludes import Clock
from chaoskit.model.schedule import Schedule
from chaoskit.trial.attempt import Attempt
from chaoskit.trial.left import left_behind
from chaoskit.trial.reports import Message
from chaoskit.trial.state import TrialState
from chaoskit.trial.watch import Looker, Watch


class Trial:
    """One trial while it runs. Implements `chaoskit.model.hosting.Observer`.

    A request that comes outside an attempt is nobody's.
    """

    def __init__(self, state: TrialState) -> None:
        self.state = state
        self._stage = state.stage
        self._attempt: Attempt | None = None

    async def run(self, attempt: int, schedule: Schedule, looker: Looker | None = None) -> History:
        """Run attempts from number ``attempt`` on, until the task ends by itself or a bound is met.

        After a success in an attempt without a fault the task is started again, if ``schedule`` has
        a fault for later.

        Args:
            attempt: of the first one.
            schedule: the faults.
            looker: looks at the first attempt without a fault.
        """
        state, scenario = self.state, self._stage.scenario
        failures = 0
        while True:
            looked_at = looker if attempt == len(schedule.attempts) + 1 else None
            ended = await self._run_attempt(attempt, schedule, looked_at)
            again = _goes_on(schedule, attempt)
            attempt = state.attempts + 1
            if self._attempt is not None and self._attempt.claimed:
                break  # by the one that went on in the place of a paused one, which is over too
            if ended.how in {"killed", "stopped"} or (again and ended.succeeded):
                continue
            if self._is_final(ended) or (ended.how == "timeout" and not schedule.attempts):
                break  # an undisturbed run that does not end would not end the next time either
            failures += 1
            if failures >= scenario.attempts_max:
                break
        state.all_lands()
        left = left_behind(self._stage.workspace, state.recorder.history())
        if scenario.outputs or left:
            seen = self._stage.outputs(state.conduct.digests)
            state.recorder.add(msgspec.structs.replace(seen, left=left))
        return state.recorder.history()

    async def _run_attempt(
        self, number: int, schedule: Schedule, looker: Looker | None
    ) -> AttemptEnded:
        state, before = self.state, self._attempt
        self._attempt = None
        faults = schedule.faults_of(number)
        preludes = [fault for fault in faults if fault.is_prelude]
        if any(isinstance(fault.action, Clock) for fault in preludes):
            state.all_lands()  # nothing is under way for as long as clocks are moved by
        if (after_s := state.conduct.resume_after_s) and state.recorder.history().ends_with_a_kill:
            state.all_lands()
            self._stage.circumstances.move_on(after_s)
        await self._stage.before(number, preludes, state.recorder)
        if before is not None:
            await before.forget_held()
        self._attempt = Attempt(state, number, faults, looker)
        ended = await self._attempt.run()
        state.find_records(ended.attempt)
        return ended

    def _is_final(self, ended: AttemptEnded) -> bool:
        if ended.how == "not-started" or ended.succeeded:
            return True
        history = self.state.recorder.history()
        if history.stated_end is None:
            return False
        return history.may_end_so or self._stage.scenario.refusals == "allowed"

    # What the tracer, tasks and services say goes to the attempt that is running.

    def traced(self, message: Mapping[str, Any]) -> None:
        """Take a message of the tracer in."""
        if self._attempt is not None:
            self._attempt.traced(message)

    def heard(self, message: Message) -> bool:
        """Take a report of the task in; True when it waits for an answer and may go on."""
        return self._attempt is not None and self._attempt.watch.heard(message)

    def received(self, request: RequestInfo) -> int | None:
        """See `chaoskit.model.hosting.Observer`."""
        return None if self._attempt is None else self._attempt.watch.received(request)

    def _watch_of(self, number: int) -> Watch | None:
        return None if self._attempt is None else self._attempt.watch_of(number)

    def applied(self, number: int, effects: Sequence[Effect]) -> bool:
        """See `chaoskit.model.hosting.Observer`."""
        watch = self._watch_of(number)
        if watch is None:
            return False
        alive = watch.applied(number, effects)
        self.state.in_flight.passed(watch.service_of(number))
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
        if self._attempt is not None:
            self._attempt.watch.moved += 1
        recorder = self.state.recorder
        sent = (event.body for event in recorder.history().events)
        attempt = next(
            (b.attempt for b in sent if isinstance(b, RequestReceived) and b.request == number),
            0,  # one that was left out
        )
        for effect in effects:
            recorder.add(EffectApplied(attempt=attempt, effect=effect, request=number))


def _goes_on(schedule: Schedule, attempt: int) -> bool:
    """Whether the task is started once more after a success in ``attempt``."""
    return not schedule.faults_of(attempt) and any(schedule.attempts[attempt:])
