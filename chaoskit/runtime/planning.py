"""What may be said of a step besides its name and its call, checked before anything is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, TypedDict

from chaoskit.runtime.errors import Misuse, nearest
from chaoskit.runtime.fingerprint import fingerprint
from chaoskit.runtime.records import Order, Plan, Policy

CRASHES_MAX = 5
"""A step that was begun so often without an end is not begun again. A deploy now and then does not
come near; a step that kills its process is there after five restarts."""


class Undo(NamedTuple):
    """What takes a step back.

    Attributes:
        call: called with the undo's own effect (its ``key`` is the same each time) and the result
            of the step.
        keyed: calling it again with the same key does it once. The default, because a plain
            function given as ``undo=`` must be resumable too.
        look_up: asks whether it was done: returns its result, or None.
    """

    call: Callable[[Any, Any], Any]
    keyed: bool = True
    look_up: Callable[[Any], Any] | None = None


class How(TypedDict, total=False):
    """The declarations of a step, as keywords.

    Keywords:
        inputs: what the step depends on, any JSON value; a mapping is compared per key.
        order: when it is recorded; `Order.INTENT_FIRST` unless it is ``read_only``, which is
            recorded after. With `Order.RECORD_AFTER` a kill in between repeats it.
        read_only: it changes nothing and may be called as often as one likes.
        keyed: the service does the thing once however often it is called with one key.
        key_lasts: how long the service remembers a key, in seconds or as a timedelta. A step that
            was first begun longer ago is not called again on its key.
        look_up: asks the service whether this step happened, by ``effect.key``, and returns what
            the call would have returned, or None if it did not. It must see what was done a
            moment ago; a lagging search does not do.
        needs: names of pins that must be as they were recorded when the step begins.
        changes: names of pins that the step itself changes; they are observed again after it.
        retries: how often a call that raised is made again, over all attempts; allowed where the
            declarations above allow to call again. A crash uses up none.
        retry_on: which exceptions are tried again.
        crashes_max: after so many bodies without an end the step is refused as poisoned.
        costs: what one call costs, by budget; see `Run.budget`.
        undo: takes the step back, by its result, with a key of its own: a function of the undo's
            effect and the result, or an `Undo`. See `Run.compensate`.
    """

    inputs: object
    order: Order
    read_only: bool
    keyed: bool
    key_lasts: float | timedelta
    look_up: Callable[[Any], Any] | None
    needs: Sequence[str]
    changes: Sequence[str]
    retries: int
    retry_on: type[Exception] | tuple[type[Exception], ...]
    crashes_max: int
    costs: Mapping[str, float]
    undo: Callable[[Any, Any], Any] | Undo | None


_KNOWN = frozenset(How.__annotations__)
_ATOMIC = frozenset({"inputs", "needs", "changes", "costs", "undo"})


def plan_step(name: str, how: How) -> Plan:
    """The plan of a step that is called; raises `Misuse` where its declarations contradict."""
    _refuse_unknown(name, how, _KNOWN)
    policy = _policy(name, how)
    order = how.get("order", Order.RECORD_AFTER if policy.read_only else Order.INTENT_FIRST)
    plan = _plan(name, how, order, policy)
    if order in {Order.ATOMIC, Order.PHASE}:
        raise Misuse("an atomic step needs the effect's own database: use run.atomic_step")
    if order is Order.RECORD_AFTER and policy.look_up:
        raise Misuse(
            "look_up= goes with Order.INTENT_FIRST: with Order.RECORD_AFTER nothing says that a "
            "step was begun, so there is nothing to look up"
        )
    if order is Order.RECORD_AFTER and policy.key_lasts_s is not None:
        raise Misuse(
            "key_lasts= goes with Order.INTENT_FIRST: with Order.RECORD_AFTER nothing says when a "
            "step was first begun"
        )
    if plan.retries is not None and plan.irreversible:
        raise Misuse(
            f"step {name!r} cannot be tried again: declare read_only=, keyed= or look_up=, which "
            "say how a second call is safe, or leave out retries="
        )
    return plan


def plan_atomic(name: str, how: How) -> Plan:
    """The plan of an atomic step; raises `Misuse` for what has no meaning there."""
    _refuse_unknown(name, how, _ATOMIC)
    return _plan(name, how, Order.ATOMIC, Policy())


def _plan(name: str, how: How, order: Order, policy: Policy) -> Plan:
    if not how:
        return Plan(name, order, _NO_INPUTS, policy)
    inputs = how.get("inputs")
    if how.keys() <= {"inputs", "keyed", "look_up", "order"}:
        return Plan(name, order, _NO_INPUTS if inputs is None else fingerprint(inputs), policy)
    retries, retry_on = _retries(name, how)
    crashes_max = how.get("crashes_max", CRASHES_MAX)
    if not isinstance(crashes_max, int) or crashes_max < 1:
        raise Misuse(f"crashes_max= of step {name!r} is a number from 1 on, not {crashes_max!r}")
    undo = how.get("undo")
    return Plan(
        name,
        order,
        fingerprint(inputs),
        policy,
        needs=_names(name, "needs", how.get("needs", ())),
        changes=_names(name, "changes", how.get("changes", ())),
        retries=retries,
        retry_on=retry_on,
        crashes_max=crashes_max,
        costs=_costs(name, how.get("costs", {})),
        undo=undo if undo is None or isinstance(undo, Undo) else Undo(undo),
    )


_NO_INPUTS = fingerprint(None)


def _policy(name: str, how: How) -> Policy:
    read_only, keyed = how.get("read_only", False), how.get("keyed", False)
    look_up, lasts = how.get("look_up"), how.get("key_lasts")
    if read_only and (keyed or look_up is not None):
        raise Misuse(
            f"step {name!r} only reads, so that neither keyed= nor look_up= says anything: leave "
            "them out"
        )
    if lasts is None:
        return Policy(read_only, keyed, None, look_up is not None)
    if not keyed:
        raise Misuse(f"key_lasts= of step {name!r} goes with keyed=True")
    seconds = lasts.total_seconds() if isinstance(lasts, timedelta) else lasts
    if not seconds > 0:
        raise Misuse(f"key_lasts= of step {name!r} is more than no time, not {lasts!r}")
    return Policy(read_only, keyed, float(seconds), look_up is not None)


def _retries(name: str, how: How) -> tuple[int | None, tuple[type[Exception], ...]]:
    retries, retry_on = how.get("retries"), how.get("retry_on", ())
    kinds = retry_on if isinstance(retry_on, tuple) else (retry_on,)
    if (retries is None) != (not kinds):
        raise Misuse(f"step {name!r}: retries= and retry_on= go together")
    if retries is not None and (not isinstance(retries, int) or retries < 0):
        raise Misuse(f"retries= of step {name!r} is a number from 0 on, not {retries!r}")
    if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        raise Misuse(f"retry_on= of step {name!r} holds classes of exceptions, not {retry_on!r}")
    return retries, kinds


def _names(step: str, what: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise Misuse(f"{what}= of step {step!r} is a list of names: write {what}=({names!r},)")
    return tuple(names)


def _costs(step: str, costs: Mapping[str, float]) -> Mapping[str, float]:
    for budget, cost in costs.items():
        if isinstance(cost, bool) or not isinstance(cost, int | float) or not cost >= 0:
            raise Misuse(f"costs= of step {step!r}: {budget} is a number from 0 on, not {cost!r}")
    return dict(costs)


def _refuse_unknown(name: str, how: How, known: frozenset[str]) -> None:
    if not how.keys() <= known:
        wrong = min(how.keys() - known)
        raise Misuse(f"step {name!r} takes no {wrong}=; it takes {nearest(wrong, known)}")
