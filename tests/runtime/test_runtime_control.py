"""Cancelled stays cancelled, budgets hold over resumes, and a run that is taken back stays back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, NoReturn

import pytest

from chaoskit.runtime import (
    Cancelled,
    Compensating,
    Effect,
    Misuse,
    Order,
    OutcomeUnknown,
    OverBudget,
    Refused,
    Run,
    Undo,
    open_run,
    operating,
    run_main,
    settle,
)
from tests.runtime.calls import Stopped, never, stop

Told = list[tuple[str, ...]]


@pytest.mark.parametrize("where", ["inside", "outside"])
@pytest.mark.parametrize("how", [{}, {"read_only": True}, {"order": Order.RECORD_AFTER}])
def test_no_step_begins_after_a_cancellation(
    store: Path, told: Told, where: str, how: dict[str, Any]
) -> None:
    """Not in this attempt and not in a later one; what is done still gives its result."""
    with open_run(store, inputs=None) as run:
        run.step("a", lambda _: 1)
        if where == "inside":
            run.cancel("wrong month")
        else:
            operating.cancel(store, "default", "wrong month")
        with pytest.raises(Cancelled, match=r"was cancelled \(wrong month\)"):
            run.step("b", never, **how)
    for _ in range(2):
        with open_run(store, inputs=None) as run:
            assert run.step("a", never) == 1
            with pytest.raises(Cancelled) as caught:
                run.step("b", never, **how)
            with pytest.raises(Cancelled):
                run.finish()
        assert f"chaoskit runs uncancel {store} default" in str(caught.value)
        assert told[-1][0] == "refused"
    operating.uncancel(store, "default")
    with open_run(store, inputs=None) as run:
        run.step("a", never)
        run.step("b", lambda _: 2, **how)
        run.finish()


def test_a_step_in_flight_at_a_cancellation_is_recorded(store: Path) -> None:
    """What has begun may end: to lose its record would only make it unknown."""
    with open_run(store, inputs=None) as run:
        run.step("a", lambda _: operating.cancel(store, "default", "stop"))
        with pytest.raises(Cancelled):
            run.step("b", never)
    assert [s.state.value for s in operating.view(store, "default").steps] == ["done"]


def test_a_cancellation_needs_a_run_and_a_reason(store: Path) -> None:
    """Wrong names, no reason, a finished run: errors that change nothing."""
    with open_run(store, inputs=None) as run:
        with pytest.raises(Misuse, match="is a text"):
            run.cancel("")
        with pytest.raises(Misuse, match="is not cancelled"):
            operating.uncancel(store, "default")
        with pytest.raises(Misuse, match="no run 'defalt'; it holds default"):
            operating.cancel(store, "defalt", "x")
        run.finish()
    with pytest.raises(Misuse, match="nothing to cancel"):
        operating.cancel(store, "default", "x")


def spend(run: Run, limit: float, per: str, names: str, **how: Any) -> list[str]:
    """Take steps that cost one each until the budget is used up; which ones were called."""
    called: list[str] = []
    run.budget("usd", limit, per=per)  # type: ignore[arg-type]
    for name in names:
        try:
            run.step(name, lambda e: called.append(e.step), keyed=True, costs={"usd": 1}, **how)
        except OverBudget as error:
            assert "is used: it was not begun" in str(error)  # noqa: PT017
            break
    return called


@pytest.mark.parametrize(("per", "later"), [("run", "ef"), ("attempt", "efgh")])
@pytest.mark.parametrize("order", [Order.INTENT_FIRST, Order.RECORD_AFTER])
def test_a_budget_holds_over_resumes_as_declared(
    store: Path, per: str, later: str, order: Order
) -> None:
    """Per run it counts what earlier attempts spent, per attempt it begins anew."""
    with open_run(store, inputs=None) as run:
        assert spend(run, 6, per, "abcd", order=order) == list("abcd")
        assert run.left("usd") == 2
    with open_run(store, inputs=None) as run:
        limit = 6 if per == "run" else 4
        assert spend(run, limit, per, "abcdefghij", order=order) == list(later)
        assert run.left("usd") == 0
    with open_run(store, inputs=None) as run:
        assert spend(run, 99, per, "abcdefghij", order=order) == list(
            "ghij" if per == "run" else "ij"
        )


def test_a_crash_does_not_give_money_back(store: Path) -> None:
    """What was charged with the intent stays charged, and the next body is charged again."""
    for left in (2, 1):
        with open_run(store, inputs=None) as run:
            run.budget("usd", 3)
            with pytest.raises(Stopped):
                run.step("a", stop, keyed=True, costs={"usd": 1})
            assert run.left("usd") == left
    with open_run(store, inputs=None) as run:
        run.budget("usd", 3)
        run.step("a", lambda _: 1, keyed=True, costs={"usd": 1})
        with pytest.raises(OverBudget, match="3 of the budget of 3 per run is used"):
            run.step("b", never, keyed=True, costs={"usd": 0.5})
        run.step("c", lambda _: 1, costs={"usd": 0})


def test_what_was_not_begun_is_not_charged(store: Path) -> None:
    """A step that is refused costs nothing, of none of its budgets."""
    with open_run(store, inputs=None) as run:
        run.budget("usd", 3)
        run.budget("calls", 1)
        with pytest.raises(OverBudget, match="calls"):
            run.step("a", never, costs={"usd": 2, "calls": 2})
        operating.cancel(store, "default", "x")
        with pytest.raises(Cancelled):
            run.step("b", never, costs={"usd": 2})
        assert run.left("usd") == 3


def test_an_undeclared_budget_is_an_error(store: Path) -> None:
    """A typing error in a budget's name does not spend from nowhere."""
    with open_run(store, inputs=None) as run:
        run.budget("usd", 3)
        with pytest.raises(Misuse, match=r"no budget 'udd': declare it .* declared: usd"):
            run.step("a", never, costs={"udd": 1})
        with pytest.raises(Misuse, match="per='run' or per='attempt'"):
            run.budget("usd", 3, per="day")  # type: ignore[arg-type]
        with pytest.raises(Misuse, match="from 0 on"):
            run.budget("usd", -1)


class Agency:
    """Books and refunds, both by key; a refund may be stopped."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.refunds: dict[str, str] = {}
        self.stop_at: str | None = None

    def book(self, effect: Effect) -> str:
        """Book what the step is called."""
        self.log.append(f"book {effect.step}")
        return f"id of {effect.step}"

    def refund(self, effect: Effect, booked: str) -> str:
        """Refund a booking, once for each key; stopped before or after, if asked."""
        if self.stop_at == f"{booked} before":
            raise Stopped
        if effect.key not in self.refunds:
            self.refunds[effect.key] = booked
            self.log.append(f"refund {booked}")
        if self.stop_at == f"{booked} after":
            raise Stopped
        return effect.key

    def trip(self, store: Path) -> tuple[str, ...]:
        """The whole task: three bookings, of which the third is declined."""
        with open_run(store, inputs=None) as run:
            try:
                run.step("flight", self.book, keyed=True, undo=self.refund)
                run.step("map", self.book, keyed=True)
                run.step("hotel", self.book, keyed=True, undo=self.refund)
                run.step("pay", lambda _: "declined", keyed=True)
            except Compensating:
                pass
            return run.compensate()


def test_a_run_is_taken_back_in_reverse(store: Path) -> None:
    """Each step that has an undo, the last one first, by its result; the others stay."""
    agency = Agency()
    assert agency.trip(store) == ("hotel", "flight")
    assert agency.log[-2:] == ["refund id of hotel", "refund id of flight"]
    assert agency.trip(store) == ("hotel", "flight")
    assert len(agency.log) == 5


@pytest.mark.parametrize(
    "at", [f"id of {s} {m}" for s in ("hotel", "flight") for m in ("before", "after")]
)
def test_taking_back_goes_on_after_a_kill(store: Path, at: str) -> None:
    """Stopped at any refund, the next attempt refunds what is left, each once."""
    agency = Agency()
    agency.stop_at = at
    with pytest.raises(Stopped):
        agency.trip(store)
    agency.stop_at = None
    assert agency.trip(store) == ("hotel", "flight")
    assert sorted(agency.refunds.values()) == ["id of flight", "id of hotel"]
    assert agency.log[-2:] == ["refund id of hotel", "refund id of flight"]


def test_once_taken_back_no_step_goes_forward(store: Path, told: Told) -> None:
    """A later attempt gets what is done and is refused what is not; finishing is allowed."""
    with open_run(store, inputs=None) as run:
        run.step("a", lambda _: 1, undo=lambda *_: None)
        before = run.compensating
        run.compensate()
        assert (before, run.compensating) == (False, True)
        with pytest.raises(Compensating, match=r"call run\.compensate\(\) and finish"):
            run.step("b", never)
    with open_run(store, inputs=None) as run:
        assert run.compensating
        assert run.step("a", never, undo=lambda *_: None) == 1
        with pytest.raises(Compensating):
            run.step("b", never)
        assert not [said for said in told if said[0] == "refused"]
        run.compensate()
        run.finish("taken back")


def test_a_task_that_ignores_the_taking_back_ends_refused(
    store: Path, told: Told, capsys: pytest.CaptureFixture[str]
) -> None:
    """If nobody catches it, it is a legal end, told and with its exit code."""
    with open_run(store, inputs=None) as run:
        run.step("a", lambda _: 1, undo=lambda *_: None)
        run.compensate()

    def main() -> None:
        with open_run(store, inputs=None) as run:
            run.step("a", never, undo=lambda *_: None)
            run.step("b", never)

    with pytest.raises(SystemExit) as caught:
        run_main(main)
    assert caught.value.code == 75
    assert "is being taken back" in capsys.readouterr().err
    assert told[-1][0] == "refused"


def test_a_step_in_doubt_is_not_taken_back_blindly(store: Path) -> None:
    """Whether there is anything to refund is not guessed: a person says it."""
    how: dict[str, Any] = {"keyed": True, "undo": lambda *_: "back"}
    with open_run(store, inputs=None) as run:
        run.step("a", lambda _: 1, **how)
        with pytest.raises(ConnectionError):
            run.step("b", _lost, **how)
        with pytest.raises(OutcomeUnknown, match="'b'"):
            run.compensate()
    settle(store, "default", "b", happened=False)
    with open_run(store, inputs=None) as run:
        run.step("a", never, **how)
        with pytest.raises(Compensating):
            run.step("b", never, **how)
        assert run.compensate() == ("a",)


def _lost(effect: Effect) -> NoReturn:
    raise ConnectionError(effect.step)


def test_an_undo_that_nobody_declared_is_named(store: Path) -> None:
    """A done step with an undo is not left standing because this attempt did not take it."""
    with open_run(store, inputs=None) as run:
        run.step("a", lambda _: 1, undo=lambda *_: None)
    with (
        open_run(store, inputs=None) as run,
        pytest.raises(Refused, match="not declared in this attempt: a"),
    ):
        run.compensate()


def test_an_undo_may_be_asked_about(store: Path) -> None:
    """An undo with a look-up is asked after, like any step."""
    undone: list[str] = []
    undo = Undo(stop_undo, keyed=False, look_up=lambda effect: (undone and effect.key) or None)
    with open_run(store, inputs=None) as run:
        run.step("a", lambda _: 1, undo=undo)
        with pytest.raises(Stopped):
            run.compensate()
    undone.append("yes")
    with open_run(store, inputs=None) as run:
        run.step("a", never, undo=undo)
        assert run.compensate() == ("a",)


def stop_undo(effect: Effect, result: object) -> NoReturn:
    """An undo during which the process ends."""
    raise Stopped(effect.step, result)


def test_undos_may_be_awaited(store: Path) -> None:
    """The same in an event loop."""
    undone: list[object] = []

    async def back(effect: Effect, result: object) -> None:
        await asyncio.sleep(0)
        undone.append(result)

    async def one(effect: Effect) -> str:
        return effect.step

    async def task() -> None:
        with open_run(store, inputs=None) as run:
            await asyncio.gather(*(run.async_step(n, one, undo=back) for n in "abc"))
            await run.async_compensate()

    asyncio.run(task())
    assert sorted(map(str, undone)) == ["a", "b", "c"]


def test_undo_names_are_reserved(store: Path) -> None:
    """A step cannot take the name of another one's undo."""
    with open_run(store, inputs=None) as run, pytest.raises(Misuse, match="those of undo steps"):
        run.step("undo/a", never)
