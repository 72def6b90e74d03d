"""Literal histories, told line by line, and what an undisturbed run of the same task teaches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Self

from chaoskit.checkers.check import judge
from chaoskit.model.contract import Contract
from chaoskit.model.effects import Effect, Identity, flatten, identity_of
from chaoskit.model.events import (
    AttemptEnded,
    AttemptStarted,
    Body,
    CallSeen,
    Crossed,
    EffectApplied,
    EndStated,
    Event,
    EventsLeftOut,
    FaultLanded,
    FileLeft,
    How,
    Output,
    ReplySent,
    RequestReceived,
    StatedEnd,
    StateObserved,
    StepPhase,
    StepReported,
    TraceNoted,
)
from chaoskit.model.expectation import Expectation, Terms
from chaoskit.model.findings import Judgement
from chaoskit.model.history import History
from chaoskit.model.schedule import Fault, Schedule, parse_fault


def charge(who: str, cents: int = 100, *, key: str | None = None, **fields: object) -> Effect:
    """A charge of ``who``; further ``fields`` are part of what was asked for."""
    asked = {"amount": cents, "customer": who, **fields}
    return _effect("payments", "charge", asked, who, f"charge of {cents}", key)


def mail(who: str, text: str = "hello", *, key: str | None = None, **fields: object) -> Effect:
    """A mail to ``who``."""
    return _effect("email", "send", {"text": text, "to": who, **fields}, who, "mail", key)


def row(who: str) -> Effect:
    """A row in the database, which no request carries and no key protects."""
    return Effect(
        service="database", kind="sales", fields=flatten({"who": who}), who=who, what="row"
    )


def _effect(
    service: str, kind: str, asked: dict[str, object], who: str, what: str, key: str | None
) -> Effect:
    return Effect(
        service=service, kind=kind, fields=flatten(asked), who=who, what=what, key=key, ref="ref"
    )


class Story:
    """One trial as it happened: each method adds what was seen, in order."""

    def __init__(self) -> None:
        self._bodies: list[Body] = []
        self._attempt = 0
        self._requests = 0
        self._early = False
        self._ordinals: Counter[str] = Counter()
        self._faults: list[tuple[Fault, ...]] = []

    def starts(self) -> Self:
        """The task is started, or resumed."""
        self._attempt += 1
        self._ordinals.clear()
        return self._add(AttemptStarted(self._attempt, resume=self._attempt > 1))

    # What a service sees.

    def does(self, *effects: Effect) -> Self:
        """Each is asked for, booked and answered."""
        for effect in effects:
            self.applies(effect)._replies()
        return self

    def asks(self, effect: Effect) -> Self:
        """It is asked for, and nothing else yet."""
        return self._request(effect.service, effect.kind, effect)

    def applies(self, effect: Effect) -> Self:
        """It is asked for and booked, and not answered yet."""
        return self.asks(effect)._books(effect, self._requests)

    def repeats(self, *effects: Effect) -> Self:
        """Each is asked for, and answered as an earlier one was, without being booked."""
        for effect in effects:
            self.asks(effect)._replies(deduped=True)
        return self

    def fails(self, effect: Effect, status: int = 500) -> Self:
        """It is asked for and refused with an error."""
        return self.asks(effect)._replies(status)

    def loses(self, effect: Effect) -> Self:
        """It is asked for and booked, and its answer gets lost on purpose."""
        return self.applies(effect)._replies(delivered=False)

    def looks(self, service: str, operation: str) -> Self:
        """A mere question is answered."""
        return self._request(service, operation, None)._replies()

    def books(self, *effects: Effect) -> Self:
        """Each is found in a ledger, and no request told of it."""
        for effect in effects:
            self._books(effect, None)
        return self

    def at_once(self, *effects: Effect) -> Self:
        """All are sent at once on one connection, and answered one after the other."""
        for number, effect in enumerate(effects):
            self._early = number > 0
            self.does(effect)
        self._early = False
        return self

    def together(self, *effects: Effect) -> Self:
        """All are asked for before the first is answered."""
        for effect in effects:
            self.applies(effect)
        for number in range(self._requests - len(effects) + 1, self._requests + 1):
            self._replies(request=number)
        return self

    # What the task says.

    def calls(self, *points: str) -> Self:
        """System calls on its own files."""
        for point in points:
            self._add(CallSeen(attempt=self._attempt, call=point))
        return self

    def passes(self, name: str, ordinal: int = 1) -> Self:
        """A crossing."""
        return self._add(Crossed(self._attempt, name, ordinal))

    def step(self, name: str, *phases: StepPhase) -> Self:
        """What the task reports of a step."""
        for phase in phases:
            self._add(StepReported(self._attempt, name, phase))
        return self

    def states(self, end: StatedEnd, reason: str, step: str = "") -> Self:
        """Why it will not go on."""
        return self._add(EndStated(attempt=self._attempt, end=end, reason=reason, step=step))

    # How an attempt and the trial end.

    def floods(self, what: str) -> Self:
        """More than is kept; the rest is left out."""
        left = EventsLeftOut(attempt=self._attempt, limit=200_000, what=what, most=190_000)
        return self._add(left)

    def killed(self, point: str) -> Self:
        """The fault of this attempt lands."""
        fault = parse_fault(f"kill@{point}")
        self._faults += [()] * (self._attempt - len(self._faults))
        self._faults[self._attempt - 1] += (fault,)
        return self._add(FaultLanded(self._attempt, str(fault))).ends(9, how="killed")

    def suffers(self, *faults: str) -> Self:
        """Faults of the next attempt, or (at a point) of the one that is there, have landed."""
        for text in faults:
            fault = parse_fault(text)
            attempt = self._attempt + fault.is_prelude
            self._faults += [()] * (attempt - len(self._faults))
            self._faults[attempt - 1] += (fault,)
            self._add(FaultLanded(attempt, text))
        return self

    def wakes(self, attempt: int) -> Self:
        """An attempt that was paused goes on; the one that was started meanwhile is over."""
        self._attempt = attempt
        return self

    def lands(self, effect: Effect, attempt: int) -> Self:
        """A request that an earlier attempt had sent is carried out."""
        return self._add(EffectApplied(attempt=attempt, effect=effect, request=self._requests))

    def ends(
        self,
        code: int = 0,
        how: How = "exit",
        *,
        seconds: float = 1.0,
        leftovers: Sequence[str] = (),
        says: str = "",
    ) -> Self:
        """The attempt is over."""
        return self._add(
            AttemptEnded(
                attempt=self._attempt,
                how=how,
                code=code,
                seconds=seconds,
                leftovers=tuple(leftovers),
                output_bytes=len(says),
                output_tail=says,
            )
        )

    def leaves(self, digests: Mapping[str, str]) -> Self:
        """The declared outputs at the end, of which only the digests are known."""
        return self._add(StateObserved(dict(digests)))

    def leaves_behind(self, files: Mapping[str, FileLeft]) -> Self:
        """What is there when the task never came to its end."""
        return self._add(StateObserved({}, left=dict(files)))

    def notes(self, what: str, detail: str) -> Self:
        """What the tracer saw."""
        return self._add(TraceNoted(self._attempt, what, detail))

    def writes(self, contents: Mapping[str, bytes | int]) -> Self:
        """The declared outputs at the end; of large ones the size."""
        outputs = {
            name: Output(what) if isinstance(what, int) else Output(len(what), what)
            for name, what in contents.items()
        }
        digests = {name: f"digest of {what!r}" for name, what in contents.items()}
        return self._add(StateObserved(digests, outputs))

    @property
    def history(self) -> History:
        """All of it."""
        return History(tuple(Event(i, 1000 * i, body) for i, body in enumerate(self._bodies)))

    @property
    def schedule(self) -> Schedule:
        """The faults that landed."""
        return Schedule(tuple(self._faults))

    def _add(self, body: Body) -> Self:
        self._bodies.append(body)
        return self

    def _request(self, service: str, operation: str, wants: Effect | None) -> Self:
        self._requests += 1
        self._ordinals[f"{service}.{operation}"] += 1
        return self._add(
            RequestReceived(
                attempt=self._attempt,
                request=self._requests,
                service=service,
                operation=operation,
                ordinal=self._ordinals[f"{service}.{operation}"],
                key=wants.key if wants is not None else None,
                wants=wants,
                early=self._early,
            )
        )

    def _books(self, effect: Effect, request: int | None) -> Self:
        return self._add(EffectApplied(attempt=self._attempt, effect=effect, request=request))

    def _replies(
        self,
        status: int = 200,
        *,
        deduped: bool = False,
        delivered: bool = True,
        request: int | None = None,
    ) -> Self:
        return self._add(
            ReplySent(
                attempt=self._attempt,
                request=self._requests if request is None else request,
                status=status,
                deduped=deduped,
                delivered=delivered,
            )
        )


def undisturbed(*effects: Effect) -> Story:
    """The task that does ``effects``, one after the other, and ends."""
    return Story().starts().does(*effects).ends()


def teaches(
    story: Story,
    *,
    contract: Mapping[str, str] | None = None,
    volatile: Mapping[str, Sequence[str]] | None = None,
    ordered: bool = True,
    redo: Sequence[str] = (),
    changes: Mapping[str, Terms] | None = None,
) -> Expectation:
    """What an undisturbed ``story`` makes the checkers expect."""
    history = story.history
    dropped = {name: tuple(fields) for name, fields in (volatile or {}).items()}
    effects = tuple(body.effect for _, body in history.effects)
    asked = [body.wants for _, body in history.requests if body.wants is not None]
    requests: Counter[Identity] = Counter(identity_of(effect, dropped) for effect in asked)
    return Expectation(
        effects=effects,
        order=tuple(identity_of(effect, dropped) for effect in effects),
        volatile=dropped,
        requests=tuple(requests.items()),
        steps=tuple(dict.fromkeys(body.step for _, body in history.steps)),
        digests=history.digests,
        outputs=history.outputs,
        ordered=ordered,
        early=tuple(
            identity_of(body.wants, dropped)
            for _, body in history.requests
            if body.early and body.wants is not None
        ),
        seconds=sum(body.seconds for _, body in history.attempts),
        rules=str(Contract.of(contract or {})),
        redo_allowed=tuple(redo),
        changes=dict(changes or {}),
    )


def expecting(*effects: Effect, contract: Mapping[str, str] | None = None) -> Expectation:
    """What the undisturbed task that does ``effects`` makes the checkers expect."""
    return teaches(undisturbed(*effects), contract=contract)


def judged(story: Story, expectation: Expectation) -> Judgement:
    """What all checkers together say of a ``story`` whose faults all landed."""
    return judge(story.history, expectation, story.schedule)
