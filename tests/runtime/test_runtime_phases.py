"""Phases: one commit for many repeatable steps, and never across one that cannot be repeated."""

# ruff: noqa: PT012 - what is stopped is an attempt, and that is several statements

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import pytest

from chaoskit.probe.clock import SHIFT_VARIABLE
from chaoskit.runtime import (
    Misuse,
    Order,
    OutcomeUnknown,
    Poisoned,
    Run,
    StoreUnavailable,
    advice,
    open_run,
    operating,
)
from chaoskit.runtime.advice import Figures, Kind
from tests.runtime.calls import Stopped, never, stop

Told = list[tuple[str, ...]]


def recorded(store: Path) -> list[str]:
    """The steps that are done, by their records."""
    return [s.name for s in operating.view(store, "default").steps if s.state.value == "done"]


def commits(run: Run) -> int:
    """How many commits this attempt has made."""
    return run._books.timing.commits


@pytest.mark.parametrize(
    "how", [{"read_only": True}, {"keyed": True}, {"order": Order.RECORD_AFTER}], ids=str
)
def test_a_phase_costs_two_commits(store: Path, how: dict[str, Any]) -> None:
    """One for its begin and one for all that is in it; a resume finds every result."""
    for again in (False, True):
        with open_run(store, inputs=None) as run:
            before = commits(run)
            with run.phase("p"):
                for n in range(50):
                    call = never if again else (lambda effect: effect.key)
                    assert len(run.step(f"s/{n}", call, **how)) == 32
            assert commits(run) - before == (0 if again else 2)
    assert set(recorded(store)) == {"p", *(f"s/{n}" for n in range(50))}


def test_a_kill_repeats_what_was_held_back_with_the_same_keys(store: Path) -> None:
    """Nothing of an unfinished phase is recorded, and a service that dedupes sees no difference."""
    keys: list[str] = []

    def attempt(last: Any) -> None:
        with open_run(store, inputs=None) as run, run.phase("p"):
            for n in range(3):
                run.step(f"s/{n}", lambda effect: keys.append(effect.key), keyed=True)
            run.step("s/3", last, keyed=True)

    with pytest.raises(Stopped):
        attempt(stop)
    assert recorded(store) == []
    attempt(lambda _: 1)
    assert keys[:3] == keys[3:]


def test_an_irreversible_step_is_recorded_by_itself(store: Path) -> None:
    """What is held back is committed before it, so that no kill repeats what led to it."""
    with open_run(store, inputs=None) as run, pytest.raises(Stopped), run.phase("p"):
        run.step("read/1", lambda _: 1, read_only=True)
        run.step("send", lambda _: recorded(store), keyed=False)
        run.step("read/2", lambda _: 1, read_only=True)
        raise Stopped
    assert recorded(store) == ["read/1", "send"]
    with open_run(store, inputs=None) as run, run.phase("p"):
        run.step("read/1", never, read_only=True)
        assert run.step("send", never) == ["read/1"]


@pytest.mark.parametrize(("effects", "done"), [(1, 7), (3, 6), (4, 4), (8, 0)])
def test_so_many_effects_at_most_are_asked_for_again(store: Path, effects: int, done: int) -> None:
    """The budget of effects bounds what a kill repeats; reads are free of it."""
    with (
        open_run(store, inputs=None) as run,
        pytest.raises(Stopped),
        run.phase("p", effects=effects),
    ):
        for n in range(7):
            run.step(f"s/{n}", lambda _: 1, keyed=True)
            run.step(f"r/{n}", lambda _: 1, read_only=True)
        raise Stopped
    assert sum(name.startswith("s") for name in recorded(store)) == done


def test_dear_calls_are_recorded_sooner(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget of seconds bounds the time of the calls that a kill repeats."""
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr("time.perf_counter", lambda: float(next(clock)))
    with open_run(store, inputs=None) as run:
        held = []
        with pytest.raises(Stopped), run.phase("p", cost_s=6):
            for n in range(7):
                run.step(f"s/{n}", lambda _: 1, read_only=True)
                held.append(len(recorded(store)))
            raise Stopped
    assert held[:2] == [0, 0]
    assert held[-1] >= 3


def test_a_phase_that_raises_keeps_what_was_done(store: Path) -> None:
    """An exception is no kill: the completed steps are recorded, the phase is not."""
    with open_run(store, inputs=None) as run:
        with pytest.raises(ConnectionError), run.phase("p"):
            run.step("a", lambda _: 1, keyed=True)
            raise ConnectionError
        assert recorded(store) == ["a"]


def test_a_trial_hears_of_the_phase_and_not_of_what_it_holds(store: Path, told: Told) -> None:
    """Steps that may legally run again are not told as steps; an irreversible one is."""

    def attempt() -> list[tuple[str, ...]]:
        told.clear()
        with open_run(store, inputs=None) as run, run.phase("p"):
            run.step("a", lambda _: 1, keyed=True)
            run.step("send", lambda _: 1)
            run.step("b", lambda _: 1, read_only=True)
        return [said for said in told if said[0] in {"started", "recorded", "restored"}]

    assert attempt() == [
        *(("started", "p"), ("started", "send"), ("recorded", "send"), ("recorded", "p")),
    ]
    assert attempt() == [("restored", "p"), ("restored", "send")]


def test_a_key_in_a_phase_is_as_old_as_the_phase(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The phase's begin stands for the intents in it: a week later its keys are not trusted."""
    how: dict[str, Any] = {"keyed": True, "key_lasts": 86_400}
    with open_run(store, inputs=None) as run, pytest.raises(Stopped), run.phase("p"):
        run.step("a", stop, **how)
    with open_run(store, inputs=None) as run, pytest.raises(Stopped), run.phase("p"):
        run.step("a", lambda _: 1, **how)
        raise Stopped
    monkeypatch.setenv(SHIFT_VARIABLE, str(7 * 86_400))
    with open_run(store, inputs=None) as run, run.phase("p"):
        with pytest.raises(OutcomeUnknown, match="too old"):
            run.step("a", never, **how)
        assert run.step("b", lambda _: 1, keyed=True) == 1


def test_a_phase_that_kills_its_process_is_given_up(store: Path) -> None:
    """Its begins are counted like those of a step."""
    for _ in range(5):
        with open_run(store, inputs=None) as run, pytest.raises(Stopped), run.phase("p"):
            raise Stopped
    with (
        open_run(store, inputs=None) as run,
        pytest.raises(Poisoned, match="step 'p'"),
        run.phase("p"),
    ):
        pytest.fail("begun again")


def test_phases_neither_nest_nor_hide_the_end(store: Path) -> None:
    """One at a time, with a sensible budget, and closed before the run finishes."""
    with open_run(store, inputs=None) as run:
        with run.phase("p"):
            with pytest.raises(Misuse, match="cannot begin inside phase 'p'"), run.phase("q"):
                pytest.fail("nested")
            with pytest.raises(Misuse, match="inside phase 'p'"):
                run.finish()
        for how in ({"cost_s": 0}, {"effects": -1}):
            with pytest.raises(Misuse, match="is more than 0"):
                run.phase("r", **how)
        run.finish()


def test_threads_share_a_phase(store: Path) -> None:
    """Completions of many threads are held back together, and none is lost."""
    with (
        open_run(store, inputs=None) as run,
        run.phase("p", effects=7),
        ThreadPoolExecutor(4) as pool,
    ):
        names = [f"s/{n}" for n in range(100)]
        list(pool.map(lambda name: run.step(name, lambda _: 1, keyed=True), names))
    assert set(recorded(store)) == {"p", *names}


def test_what_cannot_be_committed_stays_held_back(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that fails at the end of a phase costs nothing: the next flush writes it all."""
    with open_run(store, inputs=None) as run:
        phase = run.phase("p")
        with monkeypatch.context() as patch, pytest.raises(StoreUnavailable), phase:
            run.step("a", lambda _: 1, keyed=True)
            patch.setattr(run._books, "commit", _full)
        assert recorded(store) == []
        phase.flush()
    assert recorded(store) == ["a"]


def _full(*_: object) -> NoReturn:
    raise StoreUnavailable("the disk is full")


def test_figures_survive_the_end(store: Path) -> None:
    """What the run spent on calls and records is told from a finished run as from another one."""
    with open_run(store, inputs=None) as run:
        for n in range(4):
            run.step(f"s/{n}", lambda _: 1, keyed=True)
            run.step(f"r/{n}", lambda _: 1, read_only=True)
    view = operating.view(store, "default")
    before = advice.figures(view.run, view.steps)
    with open_run(store, inputs=None) as run:
        for n in range(4):
            run.step(f"s/{n}", never, keyed=True)
            run.step(f"r/{n}", never, read_only=True)
        run.finish()
    view = operating.view(store, "default")
    after = advice.figures(view.run, view.steps)
    assert view.steps == ()
    assert after.kinds == before.kinds
    assert [(k.order, k.policy, k.number) for k in after.kinds] == [
        *(("intent-first", "key", 4), ("record-after", "read-only", 4)),
    ]
    assert after.commits > before.commits > 0
    assert after.commit_seconds > 0


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (Kind("intent-first", "key", 100, 0.1), "use a phase"),
        (Kind("intent-first", "key", 100, 1000.0), "leave it so"),
        (Kind("record-after", "read-only", 1000, 0.01), "use a phase"),
        (Kind("intent-first", "nothing", 100, 0.1), "record each by itself"),
        (Kind("atomic", "nothing", 100, 0.1), "record each by itself"),
        (Kind("intent-first", "look-up", 100, 0.1), "record each by itself"),
    ],
    ids=str,
)
def test_advice_follows_the_costs(kind: Kind, says: str) -> None:
    """A phase where records are a large part of cheap repeatable calls, and nowhere else."""
    lines = advice.advice(Figures((kind,), 100, 0.5))
    assert says in lines[-1]
    assert "a commit took 5 ms (100 of them timed)" in lines
    assert f"{kind.number} steps ({kind.order}, {kind.policy})" in lines[0]


def test_advice_says_when_it_knows_nothing() -> None:
    """No steps, or no timed commits: it says so instead of guessing."""
    assert advice.advice(Figures((), 0, 0)) == ["no step is recorded, so there is nothing to tell"]
    lines = advice.advice(Figures((Kind("intent-first", "key", 1, 1.0),), 0, 0))
    assert "no attempt has told what its commits cost" in lines[-1]
