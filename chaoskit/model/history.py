"""The history of one trial: its events in order, with the indexes that checkers ask for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

import msgspec

from chaoskit.model.actions import Interruptions
from chaoskit.model.behaviours import KINDS, Behaviour
from chaoskit.model.errors import FormatError
from chaoskit.model.events import (
    AttemptEnded,
    AttemptStarted,
    Body,
    EffectApplied,
    EndStated,
    Event,
    EventsLeftOut,
    FaultLanded,
    FileLeft,
    Output,
    RecordsFound,
    ReplySent,
    RequestReceived,
    StateObserved,
    StepReported,
)
from chaoskit.model.schedule import parse_fault

FORMAT = 1
"""Version of the stored form; another one is refused."""

B = TypeVar("B", bound=Body)

_TIMED = re.compile(r"@[0-9]+ms$")
_DEADLY = ("kill", "late:", "power:", "stop:", "interrupt:")
"""How faults begin that end the attempt."""


class _Stored(msgspec.Struct, frozen=True):
    format: int
    events: tuple[Event, ...]


class _Version(msgspec.Struct, frozen=True):
    format: int


_BY_A_FAULT = frozenset({"killed", "stopped"})
"""How an attempt ends that was killed, or asked to stop."""


def _is(name: str, what: str) -> bool:
    return name == what or fnmatchcase(name, what)


@dataclass(frozen=True, eq=False)
class History:
    """An immutable, densely numbered sequence of events. Compared by identity: it is large."""

    events: tuple[Event, ...]

    def of(self, kind: type[B]) -> Iterator[tuple[int, B]]:
        """``(index, body)`` of every event whose body is a ``kind``."""
        for event in self.events:
            if isinstance(event.body, kind):
                yield event.index, event.body

    @cached_property
    def effects(self) -> tuple[tuple[int, EffectApplied], ...]:
        """Every entry of every ledger that is judged, in order."""
        return tuple(pair for pair in self.of(EffectApplied) if not pair[1].ignored)

    @cached_property
    def ignored(self) -> Counter[str]:
        """How many effects of each operation are not judged."""
        return Counter(b.effect.operation for _, b in self.of(EffectApplied) if b.ignored)

    @cached_property
    def requests(self) -> tuple[tuple[int, RequestReceived], ...]:
        """Every request, in the order of arrival."""
        return tuple(self.of(RequestReceived))

    @cached_property
    def replies(self) -> dict[int, tuple[int, ReplySent]]:
        """The reply to each request that got one, by request number."""
        return {body.request: (index, body) for index, body in self.of(ReplySent)}

    @cached_property
    def steps(self) -> tuple[tuple[int, StepReported], ...]:
        """What the task said of its steps."""
        return tuple(self.of(StepReported))

    def done_at(self, what: str) -> int | None:
        """The event by which a step or an effect was first done; None: it was not.

        A reported step is done once it is recorded; in a task that records nothing, once the same
        attempt has begun another one.

        Args:
            what: a name, or a pattern, of reported steps and of operations.
        """
        done = [index for index, body in self.effects if _is(body.effect.operation, what)]
        recorded = [(index, body) for index, body in self.steps if body.phase == "recorded"]
        done += [index for index, body in recorded if _is(body.step, what)]
        begun = [] if recorded else [step for step in self.steps if step[1].phase == "started"]
        for (_, one), (index, other) in pairwise(begun):
            if one.attempt == other.attempt and _is(one.step, what) and other.step != one.step:
                done.append(index)
        return min(done, default=None)

    @cached_property
    def attempts(self) -> tuple[tuple[int, AttemptEnded], ...]:
        """The end of every attempt."""
        return tuple(self.of(AttemptEnded))

    @property
    def kills(self) -> int:
        """How many attempts were ended by a fault."""
        return sum(ended.how in _BY_A_FAULT for _, ended in self.attempts)

    @property
    def ends_with_a_kill(self) -> bool:
        """Whether the last attempt was ended by a fault."""
        return bool(self.attempts) and self.last.how in _BY_A_FAULT

    @cached_property
    def landed(self) -> tuple[tuple[int, FaultLanded], ...]:
        """The faults that took place; of those that end an attempt at a time only where it died of
        them: a task that ended by itself in the very moment of a timed kill was not killed. At a
        call, a window or a crossing some process of it was alive. Of a service's behaviours those
        whose request may have come.
        """
        ended = {body.attempt for _, body in self.attempts if body.how in _BY_A_FAULT}
        return tuple(
            (index, body) for index, body in self.of(FaultLanded) if self._took_place(body, ended)
        )

    def _took_place(self, landed: FaultLanded, ended: set[int]) -> bool:
        if landed.fault.startswith(KINDS):
            behaviour = parse_fault(landed.fault).action
            assert isinstance(behaviour, Behaviour)
            return self._may_have_met(behaviour, landed.attempt)
        deadly = landed.fault.startswith(_DEADLY) and _TIMED.search(landed.fault)
        return landed.attempt in ended or not deadly

    def _may_have_met(self, behaviour: Behaviour, attempt: int) -> bool:
        """Whether an attempt sent the request that a behaviour is about, as far as requests show. A
        kill may have come before one was counted.
        """
        service = [(i, body) for i, body in self.requests if body.service == behaviour.service]
        covered = [(i, body) for i, body in service if behaviour.covers(body.operation)]
        mine = sum(body.attempt == attempt for _, body in covered)
        if not service or (mine and behaviour.ordinal is None):
            return True
        began = next((i for i, b in self.of(AttemptStarted) if b.attempt == attempt), 0)
        before = sum(i < began for i, _ in covered)
        ordinal = behaviour.ordinal or 0
        return mine > 0 and before - self.kills < ordinal <= before + mine

    @cached_property
    def digests(self) -> dict[str, str]:
        """The declared outputs at the end, empty where none were declared."""
        for _, body in self.of(StateObserved):
            return body.digests
        return {}

    @cached_property
    def outputs(self) -> dict[str, Output]:
        """Size and content of the declared outputs, as far as they were stored."""
        return next((body.outputs for _, body in self.of(StateObserved)), {})

    @cached_property
    def left(self) -> dict[str, FileLeft]:
        """Files that may say why the task never came to its end."""
        return next((body.left for _, body in self.of(StateObserved)), {})

    @cached_property
    def records(self) -> dict[int, dict[str, int]]:
        """By attempt, the files that record completed steps, with their sizes in bytes."""
        return {body.attempt: body.files for _, body in self.of(RecordsFound)}

    @cached_property
    def left_out(self) -> EventsLeftOut | None:
        """Where and why events are missing, if any are."""
        return next((body for _, body in self.of(EventsLeftOut)), None)

    @property
    def last(self) -> AttemptEnded:
        """The end of the last attempt.

        Raises:
            IndexError: the trial had none.
        """
        return self.attempts[-1][1]

    @cached_property
    def stated_end(self) -> EndStated | None:
        """The legal stop that the last attempt stated, if it then indeed ended without success."""
        if not self.attempts or self.completed:
            return None
        stated = [body for _, body in self.of(EndStated) if body.attempt == self.last.attempt]
        return stated[-1] if stated and self.last.how == "exit" else None

    @cached_property
    def only_interrupted(self) -> bool:
        """Whether interruptions landed, and nothing else: no damage, change or second runner."""
        faults = [parse_fault(body.fault) for _, body in self.landed]
        return bool(faults) and all(isinstance(fault.action, Interruptions) for fault in faults)

    @property
    def may_end_so(self) -> bool:
        """Whether the stated end is right at once: a step of unknown outcome is named, or the task
        refuses after more than an interruption. Another refusal may be over when it is resumed
        again.
        """
        end = self.stated_end
        return end is not None and (end.end == "unknown" or not self.only_interrupted)

    @cached_property
    def completed(self) -> bool:
        """Whether an attempt ended by itself and claims success, and none began after it: one that
        had been paused may end after it.
        """
        last = max((index for index, _ in self.of(AttemptStarted)), default=-1)
        return any(index > last for index, body in self.attempts if body.succeeded)

    @property
    def claim(self) -> tuple[int, AttemptEnded]:
        """The last claim of success: an attempt that was paused meanwhile may have ended after it.

        Raises:
            IndexError: no attempt claims success.
        """
        return [ended for ended in self.attempts if ended[1].succeeded][-1]

    def encode(self) -> bytes:
        """The stored form: JSON with its format version."""
        return msgspec.json.encode(_Stored(FORMAT, self.events))

    @classmethod
    def decode(cls, data: bytes) -> History:
        """The inverse of `encode`.

        Raises:
            FormatError: damaged, or of another format version.
        """
        try:
            version = msgspec.json.decode(data, type=_Version).format
            if version != FORMAT:
                raise FormatError(
                    f"this history has format {version}, and this chaoskit reads {FORMAT}: "
                    "read it with the version that wrote it"
                )
            return cls(msgspec.json.decode(data, type=_Stored).events)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as broken:
            raise FormatError(f"not a stored history: {broken}") from broken
