"""Policies in action: reading freely, keys that grow old, retries that last, poison."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest

from chaoskit import probe
from chaoskit.probe.clock import SHIFT_VARIABLE
from chaoskit.runtime import (
    Effect,
    Misuse,
    Order,
    OutcomeUnknown,
    Poisoned,
    RetriesExhausted,
    open_run,
    operating,
    settle,
)

DAY = 86_400


class Stopped(BaseException):
    """Stands for a kill: nothing that a task catches."""


def never(effect: Effect) -> Any:
    """A call that must not be made."""
    raise AssertionError(f"{effect.step} was called again")


def stop(effect: Effect) -> NoReturn:
    """A call during which the process ends."""
    raise Stopped(effect.step)


def begin(path: Path, name: str, **how: Any) -> None:
    """Leave a step behind that is begun and not completed."""
    with open_run(path, inputs=None) as run, pytest.raises(Stopped):
        run.step(name, stop, **how)


def later(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    """Let the task's clock stand so many days after the real one."""
    monkeypatch.setenv(SHIFT_VARIABLE, str(days * DAY))


def test_the_clock_can_be_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of day is shifted by as many seconds as the variable says, and else is the time."""
    real = probe.now()
    later(monkeypatch, 7)
    assert 7 * DAY <= probe.now() - real < 7 * DAY + 100
    monkeypatch.setenv(SHIFT_VARIABLE, "a week")
    with pytest.raises(ValueError, match="is a number of seconds, not 'a week'"):
        probe.now()


def test_a_step_that_only_reads_is_called_again_freely(store: Path) -> None:
    """It costs one record, no intent, and never comes into doubt."""
    begin(store, "read", read_only=True)
    with open_run(store, inputs=None) as run:
        assert run.in_doubt == ()
        assert run.step("read", lambda effect: effect.attempt, read_only=True) == 1
    (step,) = operating.view(store, "default").steps
    assert (step.order, step.policy) == (Order.RECORD_AFTER, "read-only")


def test_a_read_with_an_intent_is_repeated_too(store: Path) -> None:
    """The policy decides, and not the order in which it is recorded."""
    begin(store, "read", read_only=True, order=Order.INTENT_FIRST)
    with open_run(store, inputs=None) as run:
        how: dict[str, Any] = {"read_only": True, "order": Order.INTENT_FIRST}
        assert run.step("read", lambda effect: effect.attempt, **how) == 2


@pytest.mark.parametrize("lasts", [DAY, timedelta(days=1)])
def test_a_key_that_the_service_remembers_is_trusted(
    store: Path, monkeypatch: pytest.MonkeyPatch, lasts: float | timedelta
) -> None:
    """Within the time that the service remembers a key the step is simply called again."""
    begin(store, "pay", keyed=True, key_lasts=lasts)
    later(monkeypatch, 0.9)
    with open_run(store, inputs=None) as run:
        assert run.step("pay", lambda e: e.attempt, keyed=True, key_lasts=lasts) == 2


def test_a_key_that_is_too_old_is_not_trusted(
    store: Path, monkeypatch: pytest.MonkeyPatch, told: list[tuple[str, ...]]
) -> None:
    """A week later nothing is called: the message has the age, and what the service remembers."""
    begin(store, "pay", keyed=True, key_lasts=DAY)
    later(monkeypatch, 7)
    with open_run(store, inputs=None) as run, pytest.raises(OutcomeUnknown) as caught:
        run.step("pay", never, keyed=True, key_lasts=DAY)
    assert "first begun 7 days, 0:00:00 ago" in str(caught.value)
    assert "remembers a key for 1 day, 0:00:00" in str(caught.value)
    assert f"chaoskit runs settle {store} default pay happened" in str(caught.value)
    assert told[-1][:2] == ("unknown", "pay")


def test_the_age_of_a_key_counts_from_its_first_use(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resuming now and then does not make a key younger."""
    how: dict[str, Any] = {"keyed": True, "key_lasts": DAY}
    for days in (0, 0.4, 0.8):
        later(monkeypatch, days)
        begin(store, "pay", **how)
    later(monkeypatch, 1.1)
    with open_run(store, inputs=None) as run, pytest.raises(OutcomeUnknown, match="too old"):
        run.step("pay", never, **how)
    settle(store, "default", "pay", happened=False)
    with open_run(store, inputs=None) as run:
        assert run.step("pay", lambda effect: effect.attempt, **how) == 4


@pytest.mark.parametrize("found", ["ch_1", None])
def test_an_old_key_with_a_look_up_is_asked_about(
    store: Path, monkeypatch: pytest.MonkeyPatch, found: str | None
) -> None:
    """A look-up says whether it happened, however old the key is."""
    how: dict[str, Any] = {"keyed": True, "key_lasts": DAY, "look_up": lambda _: found}
    begin(store, "pay", **how)
    later(monkeypatch, 7)
    with open_run(store, inputs=None) as run:
        assert run.step("pay", lambda _: "new", **how) == (found or "new")


def test_contradicting_policies_are_refused(store: Path) -> None:
    """Declarations that could only be ignored are errors that name the fix."""
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"read_only": True, "keyed": True}, "only reads"),
        ({"key_lasts": 5}, "goes with keyed=True"),
        ({"keyed": True, "key_lasts": 0}, "more than no time"),
        ({"keyed": True, "key_lasts": 5, "order": Order.RECORD_AFTER}, "nothing says when"),
        ({"retries": 1, "retry_on": OSError}, "cannot be tried again"),
        ({"retries": 1, "keyed": True}, "go together"),
        ({"retry_on": OSError, "keyed": True}, "go together"),
        ({"retries": -1, "retry_on": OSError, "keyed": True}, "from 0 on"),
        ({"retries": 1, "retry_on": int, "keyed": True}, "classes of exceptions"),
        ({"crashes_max": 0}, "from 1 on"),
        ({"needs": "file"}, r"write needs=\('file',\)"),
        ({"costs": {"usd": "3"}}, "is a number"),
        ({"key_last": 5}, "takes no key_last=; it takes key_lasts"),
        ({"order": Order.PHASE}, "atomic step"),
    ]
    with open_run(store, inputs=None) as run:
        for how, message in wrong:
            with pytest.raises(Misuse, match=message):
                run.step("a", never, **how)
    assert operating.view(store, "default").steps == ()


class Flaky:
    """A service that fails a number of times before it answers."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.calls = 0

    def __call__(self, effect: Effect) -> str:
        """Answer, or fail."""
        self.calls += 1
        if self.calls <= self.failures:
            raise ConnectionError(f"failure {self.calls}")
        return effect.key


@pytest.mark.parametrize(
    "how",
    [
        {"keyed": True},
        {"look_up": lambda _: None},
        {"read_only": True},
        {"order": Order.RECORD_AFTER},
    ],
    ids=["key", "look-up", "read-only", "record-after"],
)
def test_a_failure_is_tried_again_where_that_is_safe(store: Path, how: dict[str, Any]) -> None:
    """As often as declared, with the same key, and no more."""
    service = Flaky(2)
    with open_run(store, inputs=None) as run:
        run.step("call", service, retries=2, retry_on=ConnectionError, **how)
        assert service.calls == 3
        worse = Flaky(9)
        with pytest.raises(ConnectionError, match="failure 3"):
            run.step("worse", worse, retries=2, retry_on=ConnectionError, **how)
        assert worse.calls == 3


def test_retries_are_counted_over_all_attempts(store: Path) -> None:
    """What one attempt used up the next one does not have; a crash uses up none."""
    how: dict[str, Any] = {"keyed": True, "retries": 3, "retry_on": (ConnectionError,)}
    calls: list[int] = []

    def fail_then_crash(effect: Effect) -> NoReturn:
        calls.append(effect.attempt)
        raise Stopped if len(calls) % 2 == 0 else ConnectionError

    for _ in range(3):
        with open_run(store, inputs=None) as run, pytest.raises(Stopped):
            run.step("call", fail_then_crash, **how)
    with open_run(store, inputs=None) as run, pytest.raises(ConnectionError):
        run.step("call", Flaky(9), **how)
    with open_run(store, inputs=None) as run, pytest.raises(RetriesExhausted) as caught:
        run.step("call", never, **how)
    assert "failed 4 times over all attempts, and may be tried again 3 times" in str(caught.value)
    assert f"chaoskit runs settle {store} default call did-not-happen" in str(caught.value)
    settle(store, "default", "call", happened=False)
    with open_run(store, inputs=None) as run:
        run.step("call", lambda _: "at last", **how)


def test_another_exception_is_not_tried_again(store: Path) -> None:
    """Only what is named is tried again; the rest goes to the caller at once."""
    calls: list[int] = []

    def fail(_: Effect) -> NoReturn:
        calls.append(1)
        raise ValueError("a bug")

    with open_run(store, inputs=None) as run, pytest.raises(ValueError, match="a bug"):
        run.step("call", fail, keyed=True, retries=5, retry_on=ConnectionError)
    assert len(calls) == 1


@pytest.mark.parametrize("most", [1, 3])
def test_a_step_that_kills_its_process_is_given_up(store: Path, most: int) -> None:
    """After as many crashes as allowed it is refused by name, until a person says how it is."""
    how: dict[str, Any] = {"keyed": True, "crashes_max": most}
    for _ in range(most):
        begin(store, "poison", **how)
    for _ in range(2):
        with open_run(store, inputs=None) as run, pytest.raises(Poisoned) as caught:
            run.step("poison", never, **how)
    assert f"step 'poison' was begun {most} times without an end" in str(caught.value)
    assert f"chaoskit runs settle {store} default poison did-not-happen" in str(caught.value)
    settle(store, "default", "poison", happened=False)
    with open_run(store, inputs=None) as run:
        assert run.step("poison", lambda effect: effect.attempt, **how) == most + 1


def test_poison_stops_after_five_crashes_unless_said_otherwise(store: Path) -> None:
    """The default is five; exceptions do not count, because the process came back from them."""
    for _ in range(4):
        begin(store, "poison", keyed=True)
    with open_run(store, inputs=None) as run:
        for _ in range(9):
            with pytest.raises(ConnectionError):
                run.step("poison", Flaky(1), keyed=True)
    begin(store, "poison", keyed=True)
    with open_run(store, inputs=None) as run, pytest.raises(Poisoned, match="begun 5 times"):
        run.step("poison", never, keyed=True)


def test_a_look_up_saves_a_poisoned_step(store: Path) -> None:
    """What did happen before the crash is found, however often it crashed."""
    for _ in range(5):
        begin(store, "pay", look_up=lambda _: None)
    with open_run(store, inputs=None) as run:
        assert run.step("pay", never, look_up=lambda _: "found") == "found"
