"""Steps that are called: what is done once, what is asked, and what stops the run."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoskit.runtime import (
    DuplicateStep,
    Effect,
    Misuse,
    Order,
    OutcomeUnknown,
    Refused,
    Run,
    UnstorableResult,
    open_run,
    settle,
)
from tests.runtime.calls import Stopped, never, stop

Told = list[tuple[str, ...]]


def begin(path: Path, *names: str, inputs: object = None) -> None:
    """Leave steps behind that are begun and not completed."""
    for name in names:
        with open_run(path, inputs=None, ordered=False) as run, pytest.raises(Stopped):
            run.step(name, stop, inputs=inputs)


@pytest.mark.parametrize("order", [Order.INTENT_FIRST, Order.RECORD_AFTER])
@pytest.mark.parametrize("result", [None, "", 0, False, [], {}, "čaj ☕", "x" * 1_000_000])
def test_a_step_that_is_done_gives_its_result_back(
    store: Path, order: Order, result: object
) -> None:
    """Every kind of result, None and empty ones too, is restored without a call."""
    with open_run(store, inputs=None) as run:
        assert run.step("a", lambda _: result, order=order) == result
    for _ in range(2):
        with open_run(store, inputs=None) as run:
            assert run.step("a", never, order=order) == result


def test_keys_are_stable_across_attempts_and_differ_between_steps(store: Path) -> None:
    """One step has one key however often it is begun; two alike steps have two."""
    keys: list[tuple[str, int]] = []

    def pay(effect: Effect) -> None:
        keys.append((effect.key, effect.attempt))
        if len(keys) < 3:
            raise Stopped

    for _ in range(2):
        with open_run(store, inputs=None) as run, pytest.raises(Stopped):
            run.step("pay/7", pay, keyed=True)
    with open_run(store, inputs=None) as run:
        run.step("pay/7", pay, keyed=True)
        run.step("pay/31", pay, keyed=True)
    assert [attempt for _, attempt in keys] == [1, 2, 3, 1]
    assert len({key for key, _ in keys[:3]}) == 1
    assert keys[3][0] != keys[0][0]


def test_a_look_up_that_finds_stands_for_the_call(store: Path) -> None:
    """What the service already has is recorded as the result, with the ids that were noted."""
    begin(store, "pay")

    def find(effect: Effect) -> str:
        effect.produced("ch_1")
        return f"found after {effect.attempt}"

    with open_run(store, inputs=None) as run:
        assert run.step("pay", never, look_up=find) == "found after 1"
        record = run._books.see("default", "pay").step
        assert record is not None
        assert record.produced == ("ch_1",)
        assert record.proof is not None
        assert record.proof.value == "look-up"
    with open_run(store, inputs=None) as run:
        assert run.step("pay", never) == "found after 1"


@pytest.mark.parametrize("found", ["", 0, False, []])
def test_a_look_up_finds_nothing_only_with_none(store: Path, found: object) -> None:
    """Empty is something that was found; only None means that the step did not happen."""
    begin(store, "pay")
    with open_run(store, inputs=None) as run:
        assert run.step("pay", never, look_up=lambda _: found) == found


def test_a_look_up_that_finds_nothing_leads_to_the_call(store: Path) -> None:
    """The service does not have it, so it is called again, with the same key."""
    begin(store, "pay")
    with open_run(store, inputs=None) as run:
        asked: list[str] = []

        def find(effect: Effect) -> tuple[str, int] | None:
            asked.append(effect.key)
            return None

        key, attempt = run.step("pay", lambda effect: [effect.key, effect.attempt], look_up=find)
        assert (asked, attempt) == ([key], 2)


def test_a_step_that_was_not_begun_is_not_looked_up(store: Path) -> None:
    """The first call costs no question."""
    with open_run(store, inputs=None) as run:
        assert run.step("pay", lambda _: 1, look_up=never) == 1


def test_nothing_that_can_tell_means_stop(store: Path, told: Told) -> None:
    """Without look-up and key the run ends by the step's name, each time, and says how to go on."""
    begin(store, "mail/3")
    for _ in range(2):
        with open_run(store, inputs=None) as run, pytest.raises(OutcomeUnknown) as caught:
            run.step("mail/3", never)
        assert caught.value.step == "mail/3"
        assert f"settle('{store}', 'default', 'mail/3'" in str(caught.value)
        assert told[-1] == ("unknown", "mail/3", caught.value.reason)


@pytest.mark.parametrize("where", ["outside", "inside"])
def test_a_person_can_say_that_it_happened(store: Path, where: str) -> None:
    """A step settled as happened is restored with the result that the person gave."""
    begin(store, "mail")
    if where == "outside":
        settle(store, "default", "mail", happened=True, result={"id": "m1"})
    with open_run(store, inputs=None) as run:
        if where == "inside":
            run.settle("mail", True, {"id": "m1"})
        assert run.in_doubt == ()
        assert run.step("mail", never) == {"id": "m1"}


def test_a_person_can_say_that_it_did_not_happen(store: Path) -> None:
    """A step settled as not happened is called with its old key, and may come into doubt again."""
    begin(store, "mail")
    settle(store, "default", "mail", happened=False)
    with open_run(store, inputs=None) as run, pytest.raises(Stopped):
        run.step("mail", stop)
    with open_run(store, inputs=None) as run, pytest.raises(OutcomeUnknown, match="attempt 2"):
        run.step("mail", never)
    settle(store, "default", "mail", happened=False)
    with open_run(store, inputs=None) as run:
        assert run.step("mail", lambda effect: effect.attempt) == 3


def test_only_a_step_in_doubt_can_be_settled(store: Path) -> None:
    """A wrong name, a finished step, a second verdict or a contradiction changes nothing."""
    begin(store, "mail/1", "mail/2")
    with open_run(store, inputs=None, ordered=False) as run:
        run.step("done", lambda _: 1)
        for name in ("mail/9", "done"):
            with pytest.raises(Misuse, match=r"not in doubt; steps in doubt: mail/1, mail/2"):
                run.settle(name, True)
        with pytest.raises(Misuse, match="cannot have a result"):
            run.settle("mail/1", False, "sent")
        with pytest.raises(Misuse, match="True or False, not 'no'"):
            run.settle("mail/1", "no")  # type: ignore[arg-type]
        with pytest.raises(UnstorableResult, match="Nothing was settled"):
            run.settle("mail/1", True, (1,))
        run.settle("mail/1", True)
        with pytest.raises(Misuse, match="not in doubt; steps in doubt: mail/2"):
            run.settle("mail/1", False)
    with pytest.raises(Misuse, match="no run 'other'"):
        settle(store, "other", "mail/2", happened=True)


def test_record_after_repeats_what_was_not_recorded(store: Path) -> None:
    """At least once: a call that was cut short is simply made again, and counts as the first."""
    with open_run(store, inputs=None) as run, pytest.raises(Stopped):
        run.step("read", stop, order=Order.RECORD_AFTER)
    with open_run(store, inputs=None) as run:
        assert run.in_doubt == ()
        assert run.step("read", lambda effect: effect.attempt, order=Order.RECORD_AFTER) == 1


def test_an_exception_leaves_the_step_in_doubt_and_the_name_free(store: Path) -> None:
    """A task may try again in the same attempt, and is then held to the same decision."""

    def fail(_: Effect) -> NoReturn:
        raise TimeoutError("no answer")

    kept = []
    with open_run(store, inputs=None) as run:
        for name, keyed in (("keyed", True), ("bare", False)):
            with pytest.raises(TimeoutError, match="no answer") as caught:
                run.step(name, fail, keyed=keyed)
            kept.append(caught.value)
        assert run.step("keyed", lambda effect: effect.attempt, keyed=True) == 2
        with pytest.raises(OutcomeUnknown):
            run.step("bare", never)


def test_a_stop_iteration_of_a_call_is_not_taken_for_a_result(store: Path) -> None:
    """The machinery inside is built on StopIteration; one of the user's own passes through."""
    nothing: list[int] = []

    def exhausted(_: Effect) -> int:
        return next(iter(nothing))

    with open_run(store, inputs=None) as run:
        with pytest.raises(StopIteration):
            run.step("next", exhausted)
        assert run.in_doubt == ("next",)


@pytest.mark.parametrize("order", [Order.INTENT_FIRST, Order.RECORD_AFTER])
def test_an_unstorable_result_says_what_stands(store: Path, order: Order) -> None:
    """The effect happened and cannot be recorded: the message says so, and nothing pretends."""
    with open_run(store, inputs=None) as run:
        with pytest.raises(UnstorableResult, match="The call has returned") as caught:
            run.step("a", lambda _: (1,), order=order)
        assert run.in_doubt == (("a",) if order is Order.INTENT_FIRST else ())
        assert ("stays in doubt" in str(caught.value)) is (order is Order.INTENT_FIRST)


def test_one_name_twice_in_one_attempt_is_an_error(store: Path) -> None:
    """Two steps of one name could not be told apart; the same name in the next attempt is one."""
    for attempt in range(2):
        with open_run(store, inputs=None) as run:
            run.step("mail", lambda _: 1)
            with pytest.raises(DuplicateStep, match=r'give each its own name.*f"mail/\{index\}"'):
                run.step("mail", never)
            assert run.step("other", never if attempt else lambda _: 0) == 0


@pytest.mark.parametrize("name", ["", "a b", "-a", ".a", "ä", "a\n", "x" * 201, 7, "a,b", "a#1"])
def test_a_name_that_cannot_name_a_point_is_refused(store: Path, name: object) -> None:
    """A step's name is also the name of its crossings, so both have the same letters."""
    with open_run(store, inputs=None) as run, pytest.raises(Misuse, match="a step's name is"):
        run.step(name, never)  # type: ignore[arg-type]


def test_other_inputs_of_the_run_are_refused_by_field(store: Path, told: Told) -> None:
    """A resume with other inputs does not begin; the message has the field and both digests."""
    open_run(store, inputs={"month": "May", "rate": 1}).close()
    with pytest.raises(Refused, match=r"field 'month' \(recorded \w{16}, given \w{16}\)") as caught:
        open_run(store, inputs={"month": "June", "rate": 1})
    assert "rate" not in str(caught.value)
    assert told == [("refused", str(caught.value))]
    open_run(store, inputs={"rate": 1, "month": "May"}).close()


@pytest.mark.parametrize("falsy", [None, {}, [], ""])
def test_leaving_the_inputs_out_is_not_the_same_inputs(store: Path, falsy: object) -> None:
    """No falsy spelling of the inputs starts the run anew or goes on with it."""
    open_run(store, inputs={"month": "May"}).close()
    with pytest.raises(Refused, match="field 'month'"):
        open_run(store, inputs=falsy)


@pytest.mark.parametrize("state", ["begun", "done", "cleared"])
def test_other_inputs_of_a_step_are_refused_by_step_and_field(store: Path, state: str) -> None:
    """A recorded step is the step with those inputs; another is not given its result."""
    if state == "done":
        with open_run(store, inputs=None) as run:
            run.step("mail/1", lambda _: 1, inputs={"to": "a@example.org"})
    else:
        begin(store, "mail/1", inputs={"to": "a@example.org"})
    if state == "cleared":
        settle(store, "default", "mail/1", happened=False)
    with (
        open_run(store, inputs=None) as run,
        pytest.raises(Refused, match="step 'mail/1' was recorded with other inputs: field 'to'"),
    ):
        run.step("mail/1", never, inputs={"to": "b@example.org"}, keyed=True)


def test_a_begun_step_cannot_change_its_order(store: Path) -> None:
    """A record written before the effect is not read as one written after it."""
    begin(store, "mail")
    with open_run(store, inputs=None) as run, pytest.raises(Refused, match=r"begun with order="):
        run.step("mail", never, order=Order.RECORD_AFTER)


def test_contradicting_options_are_refused(store: Path) -> None:
    """Options that could only be ignored are errors."""
    with open_run(store, inputs=None) as run:
        with pytest.raises(Misuse, match=r"use run\.atomic_step"):
            run.step("a", never, order=Order.ATOMIC)
        with pytest.raises(Misuse, match="look_up= goes with"):
            run.step("a", never, order=Order.RECORD_AFTER, look_up=never)
        with pytest.raises(Misuse, match="an effect id is text"):
            run.step("a", lambda effect: effect.produced(7))  # type: ignore[arg-type]
    with pytest.raises(Misuse, match="a run's id"):
        open_run(store, inputs=None, run_id="")


@pytest.mark.parametrize("result", [None, {"sum": 12}, "", [1, "č"]])
def test_a_finished_run_gives_its_result_and_takes_no_step(store: Path, result: object) -> None:
    """After the end the result is all there is, in this attempt and in every later one."""

    def check(run: Run) -> None:
        assert run.finished
        assert run.result == result
        with pytest.raises(Misuse, match=r"is finished: check run\.finished"):
            run.step("late", never)
        with pytest.raises(Misuse, match="is finished"):
            run.finish(result)

    with open_run(store, inputs={"a": 1}) as run:
        assert not run.finished
        with pytest.raises(Misuse, match="not finished, so it has no result"):
            _ = run.result
        run.step("only", lambda _: 1)
        run.finish(result)
        check(run)
    with open_run(store, inputs={"a": 1}) as run:
        check(run)


def test_a_finished_run_with_other_inputs_is_refused(store: Path) -> None:
    """An old success is never handed out for new inputs; the message asks for another run id."""
    with open_run(store, inputs={"a": 1}) as run:
        run.finish("old")
    with pytest.raises(Refused, match=r"is finished, and had other inputs: .*run_id of their own"):
        open_run(store, inputs={"a": 2})
    with open_run(store, inputs={"a": 2}, run_id="second") as run:
        assert not run.finished


def test_a_run_does_not_finish_over_a_step_in_doubt(store: Path, told: Told) -> None:
    """To forget an unknown outcome would be a false success, so finishing names it instead."""
    begin(store, "mail/1", "mail/2")
    with open_run(store, inputs=None, ordered=False) as run:
        with pytest.raises(OutcomeUnknown, match="mail/1, mail/2"):
            run.finish()
        assert told[-1][:2] == ("unknown", "mail/1")
        run.settle("mail/1", True)
        run.settle("mail/2", False)
        run.finish()


def test_an_unstorable_result_does_not_finish_the_run(store: Path) -> None:
    """A run whose result cannot be kept goes on being resumable."""
    with open_run(store, inputs=None) as run:
        run.step("a", lambda _: 1)
        with pytest.raises(UnstorableResult, match="The run is not finished"):
            run.finish((1, 2))
    with open_run(store, inputs=None) as run:
        assert run.step("a", never) == 1
        run.finish([1, 2])


def test_a_trial_hears_each_crossing_in_order(store: Path, told: Told) -> None:
    """The crossings of a step are named after it, and its phases are told when they are true."""
    with open_run(store, inputs=None) as run:
        run.step("a", lambda _: told.append(("body",)))
        run.step("b", lambda _: told.append(("body",)), order=Order.RECORD_AFTER)
    expected = [
        *(("point", "a.begin"), ("point", "a.intent"), ("started", "a"), ("body",)),
        *(("point", "a.effect"), ("recorded", "a"), ("point", "a.record")),
        *(("point", "b.begin"), ("started", "b"), ("body",)),
        *(("point", "b.effect"), ("recorded", "b"), ("point", "b.record")),
    ]
    assert told == expected
    told.clear()
    with open_run(store, inputs=None) as run:
        run.step("a", never)
        run.step("b", never, order=Order.RECORD_AFTER)
        run.finish()
    assert told == [
        *(("restored", "a"), ("restored", "b")),
        *(("point", "run.finish"), ("point", "run.finished")),
    ]


def test_threads_may_share_a_run(store: Path) -> None:
    """Steps of many threads are bound to their names, and none is lost."""
    with open_run(store, inputs=None, durability="normal") as run:

        def work(index: int) -> int:
            return run.step(f"square/{index}", lambda _: index * index)

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(work, range(200))) == [n * n for n in range(200)]
    with open_run(store, inputs=None) as run:
        assert [run.step(f"square/{n}", never) for n in range(200)] == [n * n for n in range(200)]


def test_a_step_within_a_step_is_a_step(store: Path) -> None:
    """An outer step that is called again finds its inner steps done."""
    with open_run(store, inputs=None) as run:

        def outer(effect: Effect) -> int:
            inner: Callable[[Effect], int] = (lambda _: 5) if effect.attempt == 1 else never
            found = run.step("inner", inner)
            if effect.attempt == 1:
                raise ConnectionError
            return found

        with pytest.raises(ConnectionError):
            run.step("outer", outer, keyed=True)
    with open_run(store, inputs=None) as run:
        assert (
            run.step("outer", lambda effect: run.step("inner", never) + effect.attempt, keyed=True)
            == 7
        )


@settings(deadline=None)
@given(st.text(alphabet="abz09_./:-", min_size=1, max_size=200))
def test_every_allowed_name_makes_points_that_parse(name: str) -> None:
    """What is accepted as a step's name gives crossings that a schedule can name."""
    from chaoskit.model.points import CrossingPoint, parse_point
    from chaoskit.runtime.journal import _check_name

    try:
        _check_name(name)
    except Misuse:
        return
    point = CrossingPoint(f"{name}.record", 1)
    assert parse_point(str(point)) == point
