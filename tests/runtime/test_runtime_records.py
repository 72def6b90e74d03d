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
    Policy,
    Proof,
    State,
    StepRecord,
    absent,
    decide,
    orders_contradict,
)
from chaoskit.runtime.records import means as means_now

POLICIES = {
    Means.NOTHING: Policy(),
    Means.REPEATABLE: Policy(read_only=True),
    Means.KEY: Policy(keyed=True, key_lasts_s=100),
    Means.KEY_TOO_OLD: Policy(keyed=True, key_lasts_s=99),
    Means.LOOK_UP: Policy(look_up=True),
}
BEGAN, NOW = 1000.0, 1099.5


def _plan(order: Order = Order.INTENT_FIRST, means: Means = Means.NOTHING) -> Plan:
    return Plan("charge/1", order, {"amount": "ab"}, POLICIES[means])


def _begun() -> StepRecord:
    return absent(_plan(), "key").begun(Order.INTENT_FIRST, BEGAN)


def test_the_table_is_total() -> None:
    """Every state meets every means: nothing is left to a default."""
    assert set(DECISIONS) == set(itertools.product(State, Means))


@pytest.mark.parametrize("means", Means)
def test_a_done_step_is_never_called_again(means: Means) -> None:
    """Whatever the caller offers now, a completion is restored."""
    assert decide(_begun().done("1", Proof.CALL), _plan(means=means), NOW) is Decision.RESTORE


@pytest.mark.parametrize("means", Means)
def test_a_step_that_surely_did_not_happen_is_called(means: Means) -> None:
    """Without a record, with a person's word, or after a re-plan there is nothing to look up."""
    never = absent(_plan(), "key")
    assert decide(never, _plan(means=means), NOW) is Decision.CALL
    assert decide(_begun().cleared(), _plan(means=means), NOW) is Decision.CALL
    forgotten = _begun().done("1", Proof.CALL).forgotten("next key")
    assert decide(forgotten, _plan(means=means), NOW) is Decision.CALL


@pytest.mark.parametrize(
    ("means", "decision"),
    [
        (Means.LOOK_UP, Decision.LOOK_UP),
        (Means.KEY, Decision.CALL),
        (Means.KEY_TOO_OLD, Decision.UNKNOWN),
        (Means.REPEATABLE, Decision.CALL),
        (Means.NOTHING, Decision.UNKNOWN),
    ],
)
def test_a_begun_step_is_decided_by_what_can_tell(means: Means, decision: Decision) -> None:
    """Ask where one can ask, repeat where the key dedupes, and otherwise stop: never guess."""
    assert means_now(_begun(), _plan(means=means), NOW) is means
    assert decide(_begun(), _plan(means=means), NOW) is decision


@pytest.mark.parametrize(("recorded", "now"), list(itertools.product(Order, Order)))
def test_only_a_begun_step_holds_to_its_order(recorded: Order, now: Order) -> None:
    """A begun step of another order is a contradiction; one that is done may change its order."""
    begun = absent(_plan(recorded), "key").begun(recorded)
    assert orders_contradict(begun, _plan(now)) is (recorded is not now)
    assert not orders_contradict(begun.done("1", Proof.CALL), _plan(now))


def test_a_look_up_says_more_than_a_key_of_any_age() -> None:
    """With both, an old key does no harm: the service is asked."""
    plan = _plan()._replace(policy=Policy(keyed=True, key_lasts_s=1, look_up=True))
    assert means_now(_begun(), plan, NOW) is Means.LOOK_UP


@pytest.mark.parametrize(("now", "means"), [(1099.9, Means.KEY), (1100.0, Means.KEY_TOO_OLD)])
def test_a_key_is_too_old_from_the_moment_at_which_it_is_forgotten(
    now: float, means: Means
) -> None:
    """The age counts from when the step was first begun, however often it was begun since."""
    again = _begun().begun(Order.INTENT_FIRST, 1090.0)
    assert means_now(again, _plan(means=Means.KEY), now) is means
    cleared = again.cleared().begun(Order.INTENT_FIRST, 1090.0)
    assert means_now(cleared, _plan(means=Means.KEY), now) is Means.KEY


def test_crashes_are_bodies_that_never_came_back() -> None:
    """An exception is an end, a person's word accounts for all, and a done step has none."""
    record = _begun().begun(Order.INTENT_FIRST).begun(Order.INTENT_FIRST)
    assert record.crashes == 3
    assert record.failed(counts=True).crashes == 2
    assert record.failed(counts=True).failures == 1
    assert record.failed(counts=False).failures == 0
    assert record.cleared().begun(Order.INTENT_FIRST).crashes == 1
    assert record.done("1", Proof.CALL).crashes == 0


def test_attempts_count_begun_bodies() -> None:
    """A step's attempt grows with each begin and with nothing else."""
    once = absent(_plan(), "key").begun(Order.INTENT_FIRST)
    twice = once.cleared().begun(Order.INTENT_FIRST)
    assert (once.attempt, twice.attempt, twice.done("1", Proof.CALL).attempt) == (1, 2, 2)
    assert twice.key == once.key
