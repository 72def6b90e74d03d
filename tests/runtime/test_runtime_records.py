"""The decision table."""

from __future__ import annotations

import itertools

import pytest

from chaoskit.runtime.records import (
    DECISIONS,
    Decision,
    Means,
    Order,
    Plan,
    Proof,
    State,
    absent,
    decide,
    orders_contradict,
)


def _plan(order: Order = Order.INTENT_FIRST, means: Means = Means.NOTHING) -> Plan:
    return Plan(name="charge/1", order=order, inputs={"amount": "ab"}, means=means)


def test_the_table_is_total() -> None:
    """Every state meets every means: nothing is left to a default."""
    assert set(DECISIONS) == set(itertools.product(State, Means))


@pytest.mark.parametrize("means", Means)
def test_a_done_step_is_never_called_again(means: Means) -> None:
    """Whatever the caller offers now, a completion is restored."""
    record = absent(_plan(), "key").begun(Order.INTENT_FIRST).done("1", Proof.CALL)
    assert decide(record, _plan(means=means)) is Decision.RESTORE


@pytest.mark.parametrize("means", Means)
def test_a_step_that_surely_did_not_happen_is_called(means: Means) -> None:
    """Without a record, or with a person's word, there is nothing to look up."""
    never = absent(_plan(), "key")
    cleared = never.begun(Order.INTENT_FIRST).cleared()
    assert decide(never, _plan(means=means)) is Decision.CALL
    assert decide(cleared, _plan(means=means)) is Decision.CALL


@pytest.mark.parametrize(
    ("means", "decision"),
    [
        (Means.LOOK_UP, Decision.LOOK_UP),
        (Means.KEY, Decision.CALL),
        (Means.NOTHING, Decision.UNKNOWN),
    ],
)
def test_a_begun_step_is_decided_by_what_can_tell(means: Means, decision: Decision) -> None:
    """Ask where one can ask, repeat where the key dedupes, and otherwise stop: never guess."""
    begun = absent(_plan(), "key").begun(Order.INTENT_FIRST)
    assert decide(begun, _plan(means=means)) is decision


@pytest.mark.parametrize(("recorded", "now"), list(itertools.product(Order, Order)))
def test_only_a_begun_step_holds_to_its_order(recorded: Order, now: Order) -> None:
    """A begun step of another order is a contradiction; one that is done may change its order."""
    begun = absent(_plan(recorded), "key").begun(recorded)
    assert orders_contradict(begun, _plan(now)) is (recorded is not now)
    assert not orders_contradict(begun.done("1", Proof.CALL), _plan(now))


def test_attempts_count_begun_bodies() -> None:
    """A step's attempt grows with each begin and with nothing else."""
    once = absent(_plan(), "key").begun(Order.INTENT_FIRST)
    twice = once.cleared().begun(Order.INTENT_FIRST)
    assert (once.attempt, twice.attempt, twice.done("1", Proof.CALL).attempt) == (1, 2, 2)
    assert twice.key == once.key
