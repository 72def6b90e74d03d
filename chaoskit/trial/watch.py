"""The watch over one attempt: hears services and probe, books events, and kills at a point."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol, get_args

from chaoskit.model.actions import Beside, KillLeader, Late, Pause, Stop, Twin
from chaoskit.model.effects import Effect
from chaoskit.model.events import (
    CallSeen,
    Crossed,
    EffectApplied,
    EndStated,
    FaultLanded,
    ReplySent,
    RequestReceived,
    StatedEnd,
    StepPhase,
    StepReported,
)
from chaoskit.model.hosting import RequestInfo
from chaoskit.model.points import (
    CallPoint,
    CrossingPoint,
    Point,
    TimePoint,
    Window,
    WindowPoint,
)
from chaoskit.model.schedule import Fault
from chaoskit.trial.in_flight import LateRequest
from chaoskit.trial.recorder import Recorder
from chaoskit.trial.reports import Message
from chaoskit.trial.tracing import Traced

_PHASES: dict[str, StepPhase] = {phase: phase for phase in get_args(StepPhase)}
_SIGNALS = {"stop": int(signal.SIGTERM), "interrupt": int(signal.SIGINT)}
_ENDS: dict[str, StatedEnd] = {end: end for end in get_args(StatedEnd)}


class Grip(Protocol):
    """What the watch can do to the attempt's processes."""

    def freeze(self) -> None:
        """Hold all of them still."""

    def thaw(self) -> None:
        """Let them go on."""

    def kill(self) -> None:
        """Kill all of them; they are dead when this returns."""

    def kill_leader(self) -> None:
        """Kill the first one alone; it is dead when this returns."""

    def ask_to_stop(self, number: int, grace_s: float) -> None:
        """Send the first one a signal, and kill all that is left after ``grace_s``."""

    @property
    def alive(self) -> bool:
        """Whether any of them is there."""


class Looker(Protocol):
    """Looks at an attempt at some points, without doing anything to it."""

    points: frozenset[Point]

    def reached(self, point: Point, watch: Watch, late: LateRequest | None) -> None:
        """The attempt waits at ``point``. ``late`` is a request that a service has received there
        and not applied.
        """

    def changed(self, paths: Sequence[str]) -> None:
        """The task has made, or is about to make, a call that changes these files."""

    def mapped(self, paths: Sequence[str]) -> None:
        """The task can change these files by mere stores from now on."""


class Watch:
    """Implements `chaoskit.model.hosting.Observer` for one attempt.

    ``waits`` are the crossings at which the task must wait for us, ``calls`` those at which it is
    held; ``killed`` says that a fault has ended it; ``moved`` grows with all that services do;
    ``landed`` is the last fault that took place; ``stopped`` says that the task was asked to stop;
    ``late`` are requests that were in flight then, with the number of requests after which each
    lands (None: at the end). ``has_company`` says that a second runner is started beside this one,
    or was. ``held`` is the call at which the tracer holds the task now.
    """

    def __init__(  # noqa: PLR0913 - what one attempt is watched with
        self,
        attempt: int,
        faults: Sequence[Fault],
        recorder: Recorder,
        grip: Grip,
        drain: Callable[[], None],
        catch_up: Callable[[], None],
        next_number: Callable[[], int],
        looker: Looker | None = None,
        beside: Callable[[Fault], None] = lambda _: None,
    ) -> None:
        self.attempt = attempt
        self.killed = False
        self._recorder = recorder
        self._grip = grip
        self._drain = drain
        self._catch_up = catch_up
        self._next_number = next_number
        self._faults = {fault.point: fault for fault in faults if not fault.is_prelude}
        self.has_company = any(isinstance(fault.action, Beside) for fault in self._faults.values())
        self._beside = beside
        self._looker = looker
        self.leader_killed = self.stopped = False
        self.landed: Fault | None = None
        self.held: Traced | None = None
        self.moved = 0
        self.late: list[tuple[LateRequest, int | None]] = []
        self._pending: LateRequest | None = None
        points = (*self._faults, *(looker.points if looker is not None else ()))
        self.waits = frozenset(p.name for p in points if isinstance(p, CrossingPoint))
        self.calls = frozenset(p for p in points if isinstance(p, CallPoint))
        self._requests: Counter[tuple[str, str]] = Counter()
        self._crossings: Counter[str] = Counter()
        self._points: dict[int, tuple[str, str, int]] = {}
        self._senders: dict[int, Callable[[], bool]] = {}

    @property
    def times(self) -> list[tuple[int, Fault]]:
        """The faults that hang on a time, with their milliseconds from the start."""
        return [
            (point.delay_ms, fault)
            for point, fault in self._faults.items()
            if isinstance(point, TimePoint)
        ]

    def land(self, fault: Fault) -> None:
        """Do what ``fault`` says, now, unless another fault was first."""
        if self.killed or self._faults.pop(fault.point, None) is None:
            return  # each takes place once
        self._catch_up()  # which process it is: a quick task is here before we hear of its start
        action = fault.action
        if isinstance(action, Beside | Stop) and not self._grip.alive:
            return  # it had ended by itself: nobody can be asked, or overtaken, any more
        self.landed = fault
        match action:
            case Pause() | Twin():
                # It stands still until the second runner is there (a twin), or has ended.
                self._grip.freeze()
                self._tell_of(fault)
                self._beside(fault)
            case Stop():
                self._tell_of(fault)
                self.stopped = True
                self._grip.ask_to_stop(_SIGNALS[action.asked], action.grace_ms / 1000)
            case _:
                self._kill(fault)

    def _kill(self, fault: Fault) -> None:
        self.killed = True
        if isinstance(fault.action, KillLeader):
            self.leader_killed = True
            self._grip.kill_leader()
        else:
            self._grip.kill()
        if isinstance(fault.action, Late) and self._pending is not None:
            self.late.append((self._pending, fault.action.after))
        self._tell_of(fault)

    def _tell_of(self, fault: Fault) -> None:
        self._drain()  # what it had said before
        self._recorder.add(FaultLanded(self.attempt, str(fault)))

    def service_of(self, number: int) -> str:
        """Which service got this request; empty for one of an attempt that is over."""
        return self._points[number][0] if number in self._points else ""

    # The observer's four calls, in the order of a request's life.

    def received(self, request: RequestInfo) -> int | None:
        """Number the request; kill if this is the point."""
        self._catch_up()  # the call by which it was sent
        self._drain()
        key = (request.service, request.operation)
        self._requests[key] += 1
        ordinal = self._requests[key]
        number = self._next_number()
        self._points[number] = (*key, ordinal)
        self._recorder.add(
            RequestReceived(
                attempt=self.attempt,
                request=number,
                service=request.service,
                operation=request.operation,
                ordinal=ordinal,
                key=request.key,
                wants=request.wants,
                token=request.token,
                early=request.early,
            )
        )
        self._senders[number] = request.sender_lives
        self.moved += 1
        if request.later is not None and request.wants is not None:
            self._pending = LateRequest(self.attempt, number, request.service, request.later)
        dead = self._kill_at(number, "received")
        self._pending = None
        return None if dead else number

    def applied(self, number: int, effects: Sequence[Effect]) -> bool:
        """Book the effects; kill if this is the point."""
        self.moved += 1
        for effect in effects:
            self._recorder.add(EffectApplied(attempt=self.attempt, effect=effect, request=number))
        return not self._kill_at(number, "applied")

    def answering(self, number: int) -> None:
        """Hold the task still if it must not read the answer (yet)."""
        if self._fault_at(number, "answered") is not None or self._stops_at(number, "answered"):
            self._grip.freeze()

    def answered(self, number: int, status: int, *, deduped: bool, delivered: bool) -> None:
        """Book the reply; kill if this is the point."""
        if number not in self._points:
            return  # a late reply to an attempt that is already over
        self.moved += 1
        self._recorder.add(
            ReplySent(
                attempt=self.attempt,
                request=number,
                status=status,
                deduped=deduped,
                delivered=delivered,
            )
        )
        fault = self._fault_at(number, "answered")
        self._kill_at(number, "answered")
        asked = fault is not None and isinstance(fault.action, Stop)
        if self._stops_at(number, "answered") or self.leader_killed or asked:
            self._grip.thaw()

    # The tracer's stops.

    def called(self, traced: Traced, *, tell: bool) -> bool:
        """Book a call (if ``tell``), look at it or kill; True when the task may go on."""
        self._drain()
        point = traced.point
        if tell and point.side == "before":
            self._recorder.add(
                CallSeen(
                    attempt=self.attempt,
                    call=str(point),
                    sends=traced.sends,
                    bytes=traced.bytes,
                    alone=traced.alone,
                    cuts=traced.cuts,
                    program=traced.program,
                )
            )
        self._look_at(point)
        fault = self._faults.get(point)
        if fault is None or self.killed:
            return not self.killed or self.leader_killed  # what outlives its leader goes on
        self.land(fault)
        return self._goes_on()

    def _goes_on(self) -> bool:
        """Whether something of the task is alive after a fault."""
        return not self.killed or self.leader_killed

    # The probe's messages.

    def heard(self, message: Message) -> bool:
        """Book a report of the task; True when it waits for an answer and lives to get one."""
        if message.point:
            return self._crossed(message.point)
        phase = _PHASES.get(message.phase)
        if message.step and phase is not None:
            self._recorder.add(StepReported(self.attempt, message.step, phase))
        end = _ENDS.get(message.end)
        if end is not None:
            self._recorder.add(
                EndStated(attempt=self.attempt, end=end, reason=message.reason, step=message.step)
            )
        return False

    def _crossed(self, name: str) -> bool:
        self._crossings[name] += 1
        ordinal = self._crossings[name]
        self._recorder.add(Crossed(self.attempt, name, ordinal))
        if name not in self.waits:
            return False
        point = CrossingPoint(name, ordinal)
        self._look_at(point)
        fault = self._faults.get(point)
        if fault is not None and not self.killed:
            self.land(fault)
            return not self.killed
        return True

    def _fault_at(self, number: int, window: Window) -> Fault | None:
        if self.killed or number not in self._points:
            return None
        return self._faults.get(WindowPoint(*self._points[number], window))

    def _kill_at(self, number: int, window: Window) -> bool:
        if self._stops_at(number, window):
            self._look_at(WindowPoint(*self._points[number], window))
        fault = self._fault_at(number, window)
        if fault is None:
            return False
        self.land(fault)
        return self.killed and not (self.leader_killed and self._senders[number]())

    def _stops_at(self, number: int, window: Window) -> bool:
        if self._looker is None or number not in self._points:
            return False
        return WindowPoint(*self._points[number], window) in self._looker.points

    def _look_at(self, point: Point) -> None:
        if self._looker is not None and point in self._looker.points:
            self._looker.reached(point, self, self._pending)
