"""What is known of a step, and the one table that says what a resume does with it.

The minimum durable unit: which step, with which inputs, which side-effect ids it produced, and
confirmation that its write landed. The record also says which order was meant, because a record
written before the effect and one written after it mean opposite things. Pure values, no I/O.

They are named tuples and not data classes for one reason: this loads in every attempt, and what
data classes import costs more than the rest of this package.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from chaoskit.runtime.fingerprint import Fingerprint


class Order(Enum):
    """When a step is recorded, relative to its effect. The value is what the store holds."""

    INTENT_FIRST = "intent-first"
    """Intent, effect, completion: nothing is repeated unseen. Two commits; the default."""
    RECORD_AFTER = "record-after"
    """Effect, completion: killed in between, the call is repeated. For what may run twice."""
    ATOMIC = "atomic"
    """Effect and completion in one transaction of the effect's own database: exactly once."""


class State(Enum):
    """How far a step got, as far as the store can tell."""

    ABSENT = "absent"
    """No record; never stored."""
    BEGUN = "begun"
    """Its call may or may not have had its effect."""
    CLEARED = "cleared"
    """A person said that it did not happen."""
    DONE = "done"
    """It happened, and this is its result."""


class Proof(Enum):
    """What confirms that a step is done."""

    CALL = "call"
    LOOK_UP = "look-up"
    MARKER = "marker"
    OPERATOR = "operator"


class Means(Enum):
    """What the caller offers for telling whether a begun step happened."""

    NOTHING = "nothing"
    KEY = "key"
    LOOK_UP = "look-up"


class Decision(Enum):
    """What to do with a step now."""

    CALL = "call"
    RESTORE = "restore"
    LOOK_UP = "look up first"
    UNKNOWN = "outcome unknown"


DECISIONS: dict[tuple[State, Means], Decision] = {
    (State.ABSENT, Means.NOTHING): Decision.CALL,
    (State.ABSENT, Means.KEY): Decision.CALL,
    (State.ABSENT, Means.LOOK_UP): Decision.CALL,
    (State.BEGUN, Means.NOTHING): Decision.UNKNOWN,
    (State.BEGUN, Means.KEY): Decision.CALL,
    (State.BEGUN, Means.LOOK_UP): Decision.LOOK_UP,
    (State.CLEARED, Means.NOTHING): Decision.CALL,
    (State.CLEARED, Means.KEY): Decision.CALL,
    (State.CLEARED, Means.LOOK_UP): Decision.CALL,
    (State.DONE, Means.NOTHING): Decision.RESTORE,
    (State.DONE, Means.KEY): Decision.RESTORE,
    (State.DONE, Means.LOOK_UP): Decision.RESTORE,
}


class Plan(NamedTuple):
    """What the calling code declares of a step, in this attempt."""

    name: str
    order: Order
    inputs: Fingerprint
    means: Means = Means.NOTHING


class StepRecord(NamedTuple):
    """What the store holds of a step. ``result`` is JSON text; ``attempt`` counts begun bodies."""

    name: str
    order: Order
    state: State
    inputs: Fingerprint
    key: str
    attempt: int
    produced: tuple[str, ...] = ()
    result: str | None = None
    proof: Proof | None = None

    def begun(self, order: Order) -> StepRecord:
        """The same step with its body begun once more."""
        return self._replace(order=order, state=State.BEGUN, attempt=self.attempt + 1)

    def cleared(self) -> StepRecord:
        """The same step as one that did not happen; it will be called with the same key."""
        return self._replace(state=State.CLEARED)

    def done(self, result: str, proof: Proof, produced: tuple[str, ...] = ()) -> StepRecord:
        """The same step with its completion."""
        return self._replace(state=State.DONE, result=result, proof=proof, produced=produced)


class RunRecord(NamedTuple):
    """What the store holds of a run. ``uid`` is random, made once: keys derive from it."""

    run_id: str
    uid: str
    inputs: Fingerprint
    finished: bool = False
    result: str | None = None


def absent(plan: Plan, key: str) -> StepRecord:
    """The record of a step that the store does not hold."""
    return StepRecord(
        name=plan.name,
        order=plan.order,
        state=State.ABSENT,
        inputs=plan.inputs,
        key=key,
        attempt=0,
    )


def decide(record: StepRecord, plan: Plan) -> Decision:
    """What to do now with the step of ``plan``, given what is recorded of it."""
    return DECISIONS[record.state, plan.means]


def orders_contradict(record: StepRecord, plan: Plan) -> bool:
    """Whether a begun step was meant in another order than now.

    Only then does it matter: the new order would read the old record as something else. A step
    that is done, or was never begun, may change its order freely.
    """
    return record.state is State.BEGUN and record.order is not plan.order
