"""What is known of a step, and the one table that says what a resume does with it.

The minimum durable unit: which step, with which inputs, which side-effect ids it produced, and
confirmation that its write landed. The record also says which order was meant, because a record
written before the effect and one written after it mean opposite things. Pure values, no I/O.

They are named tuples and not data classes for one reason: this loads in every attempt, and what
data classes import costs more than the rest of this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from chaoskit.runtime.fingerprint import Fingerprint


class Order(Enum):
    """When a step is recorded, relative to its effect. The value is what the store holds."""

    INTENT_FIRST = "intent-first"
    """Intent, effect, completion: nothing is repeated unseen. Two commits; the default."""
    RECORD_AFTER = "record-after"
    """Effect, completion: killed in between, the call is repeated. For what may run twice."""
    ATOMIC = "atomic"
    """Effect and completion in one transaction of the effect's own database: exactly once."""
    PHASE = "phase"
    """No step but a phase: its begin stands for the intents of the steps that it holds back."""


class State(Enum):
    """How far a step got, as far as the store can tell."""

    ABSENT = "absent"
    """No record; never stored."""
    BEGUN = "begun"
    """Its call may or may not have had its effect."""
    CLEARED = "cleared"
    """A person said that it did not happen."""
    FORGOTTEN = "forgotten"
    """It was done, and a re-plan wants it done anew, with a key of the next generation."""
    DONE = "done"
    """It happened, and this is its result."""


class Proof(Enum):
    """What confirms that a step is done."""

    CALL = "call"
    LOOK_UP = "look-up"
    MARKER = "marker"
    OPERATOR = "operator"


class Means(Enum):
    """What there is, now, for telling whether a begun step happened."""

    NOTHING = "nothing"
    REPEATABLE = "repeatable"
    """It may be called as often as one likes: it only reads, or was declared so."""
    KEY = "key"
    KEY_TOO_OLD = "key too old"
    """It was first begun longer ago than the service remembers keys."""
    LOOK_UP = "look-up"


class Decision(Enum):
    """What to do with a step now."""

    CALL = "call"
    RESTORE = "restore"
    LOOK_UP = "look up first"
    UNKNOWN = "outcome unknown"


_BEGUN = {
    Means.NOTHING: Decision.UNKNOWN,
    Means.REPEATABLE: Decision.CALL,
    Means.KEY: Decision.CALL,
    Means.KEY_TOO_OLD: Decision.UNKNOWN,
    Means.LOOK_UP: Decision.LOOK_UP,
}

DECISIONS: dict[tuple[State, Means], Decision] = {
    **{(State.ABSENT, means): Decision.CALL for means in Means},
    **{(State.BEGUN, means): decision for means, decision in _BEGUN.items()},
    **{(State.CLEARED, means): Decision.CALL for means in Means},
    **{(State.FORGOTTEN, means): Decision.CALL for means in Means},
    **{(State.DONE, means): Decision.RESTORE for means in Means},
}


_POLICIES = {
    (read_only, keyed, look_up): "+".join(
        word
        for word, declared in (("read-only", read_only), ("key", keyed), ("look-up", look_up))
        if declared
    )
    or "nothing"
    for read_only in (False, True)
    for keyed in (False, True)
    for look_up in (False, True)
}


class Policy(NamedTuple):
    """What the caller declares of a step's effect.

    Attributes:
        read_only: calling it changes nothing.
        keyed: the service does it once however often it is called with one key.
        key_lasts_s: how long the service remembers a key, in seconds; None: for ever.
        look_up: the service can be asked whether it was done.
    """

    read_only: bool = False
    keyed: bool = False
    key_lasts_s: float | None = None
    look_up: bool = False

    def __str__(self) -> str:
        return _POLICIES[self.read_only, self.keyed, self.look_up]


IRREVERSIBLE = "nothing"
"""How a record says that its effect can be neither repeated nor asked after."""


class Plan(NamedTuple):
    """What the calling code declares of a step, in this attempt.

    ``undo`` is what takes the step back, for `Run.compensate`; ``forward`` is False for such
    an undo itself.
    """

    name: str
    order: Order
    inputs: Fingerprint
    policy: Policy = Policy()
    needs: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    retries: int | None = None
    retry_on: tuple[type[Exception], ...] = ()
    crashes_max: int = 5
    costs: Mapping[str, float] = {}
    undo: Any = None
    forward: bool = True

    @property
    def repeatable(self) -> bool:
        """Whether nothing is lost if its call is made again without asking anybody."""
        return self.policy.read_only or self.order is Order.RECORD_AFTER

    @property
    def irreversible(self) -> bool:
        """Whether only its own record can tell a later attempt that it happened."""
        read_only, keyed, _, look_up = self.policy
        return not (read_only or keyed or look_up or self.order is Order.RECORD_AFTER)


class StepRecord(NamedTuple):
    """What the store holds of a step.

    Attributes:
        name: unique in its run.
        order: when it is recorded.
        state: how far it got.
        inputs: the fingerprint of what it depends on.
        key: its idempotency key, of this generation.
        attempt: how many bodies were begun, as far as that is recorded.
        produced: the ids that other systems gave to what it did.
        result: JSON text.
        proof: what confirms that it is done.
        policy: the text of the declared `Policy`.
        generation: how often a re-plan has forgotten it.
        ended: how many of the begun bodies came back with an exception, or are accounted for.
        failures: how many of its retries are used up.
        begun_at: when its body was first begun with this key, in seconds since the epoch.
        position: its index among the steps that the run takes one after the other.
        costs: what was charged for it, by budget.
        undoable: it was declared with an undo.
        seconds: how long its last call took.
        token: the fencing token of the owner that wrote the record.
        serial: grows with every record of the store.
    """

    name: str
    order: Order
    state: State
    inputs: Fingerprint
    key: str
    attempt: int
    produced: tuple[str, ...] = ()
    result: str | None = None
    proof: Proof | None = None
    policy: str = IRREVERSIBLE
    generation: int = 0
    ended: int = 0
    failures: int = 0
    begun_at: float | None = None
    position: int | None = None
    costs: Mapping[str, float] = {}
    undoable: bool = False
    seconds: float | None = None
    token: int = 0
    serial: int = 0

    def begun(
        self, order: Order, at: float | None = None, costs: Mapping[str, float] | None = None
    ) -> StepRecord:
        """The same step with its body begun once more; the first time stays what it was."""
        return self._replace(
            order=order,
            state=State.BEGUN,
            attempt=self.attempt + 1,
            begun_at=at if self.begun_at is None else self.begun_at,
            costs=self.costs if costs is None else costs,
        )

    def failed(self, *, counts: bool) -> StepRecord:
        """The same step after its body came back with an exception."""
        return self._replace(ended=self.ended + 1, failures=self.failures + counts)

    def cleared(self) -> StepRecord:
        """The same step as one that did not happen; it will be called with the same key."""
        return self._replace(state=State.CLEARED, ended=self.attempt, failures=0, begun_at=None)

    def done(
        self,
        result: str,
        proof: Proof,
        produced: tuple[str, ...] = (),
        seconds: float | None = None,
    ) -> StepRecord:
        """The same step with its completion."""
        return self._replace(
            state=State.DONE, result=result, proof=proof, produced=produced, seconds=seconds
        )

    def forgotten(self, key: str) -> StepRecord:
        """The same step as one to be taken anew, with the ``key`` of its next generation."""
        return self._replace(
            state=State.FORGOTTEN,
            key=key,
            generation=self.generation + 1,
            ended=self.attempt,
            failures=0,
            begun_at=None,
            result=None,
            proof=None,
            produced=(),
        )

    @property
    def crashes(self) -> int:
        """How many bodies were begun and never came back."""
        return self.attempt - self.ended if self.state is State.BEGUN else 0

    @property
    def in_doubt(self) -> bool:
        """Whether a run must not be finished before somebody knows whether this happened."""
        return self.state is State.BEGUN and self.order in {Order.INTENT_FIRST, Order.ATOMIC}


class Pin(NamedTuple):
    """What was observed of something that steps depend on; ``value`` is its JSON text, if small."""

    name: str
    digest: str
    value: str | None


class RunRecord(NamedTuple):
    """What the store holds of a run.

    Attributes:
        run_id: under which it is resumed.
        uid: random, made once: keys derive from it.
        inputs: their fingerprint.
        finished: whether the whole run is done.
        result: JSON text, of a finished run.
        options: by name, any JSON values.
        tools: by name, what the run was started with: a version and a binding.
        token: grows with each take-over; a writer with a lower one is refused.
        owner: JSON text of a `chaoskit.runtime.owner.Owner`; None if nobody has the run open.
        cancelled: why it was cancelled; None if it was not.
        compensating: whether it is being taken back.
        summary: figures that survive the end: see `chaoskit.runtime.advice`.
    """

    run_id: str
    uid: str
    inputs: Fingerprint
    finished: bool = False
    result: str | None = None
    options: Mapping[str, Any] = {}
    tools: Mapping[str, Mapping[str, str]] = {}
    token: int = 0
    owner: str | None = None
    cancelled: str | None = None
    compensating: bool = False
    summary: Mapping[str, Any] = {}


def absent(plan: Plan, key: str, position: int | None = None) -> StepRecord:
    """The record of a step that the store does not hold."""
    return StepRecord(
        plan.name,
        plan.order,
        State.ABSENT,
        plan.inputs,
        key,
        0,
        policy=str(plan.policy),
        position=position,
        undoable=plan.undo is not None,
    )


def means(record: StepRecord, plan: Plan, now: float) -> Means:
    """What can tell, at the time ``now``, whether the step of ``record`` happened.

    A look-up says more than a key. A key says nothing once the service has forgotten it.
    """
    policy = plan.policy
    if plan.repeatable:
        return Means.REPEATABLE
    if policy.look_up:
        return Means.LOOK_UP
    if not policy.keyed:
        return Means.NOTHING
    began = record.begun_at
    if policy.key_lasts_s is not None and began is not None and now - began >= policy.key_lasts_s:
        return Means.KEY_TOO_OLD
    return Means.KEY


def decide(record: StepRecord, plan: Plan, now: float) -> Decision:
    """What to do now with the step of ``plan``, given what is recorded of it."""
    return DECISIONS[record.state, means(record, plan, now)]


def orders_contradict(record: StepRecord, plan: Plan) -> bool:
    """Whether a begun step was meant in another order than now.

    Only then does it matter: the new order would read the old record as something else. A step
    that is done, that was never begun, or that only reads, may change its order freely.
    """
    return (
        record.state is State.BEGUN and record.order is not plan.order and not plan.policy.read_only
    )
