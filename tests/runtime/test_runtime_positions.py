"""Code that changed under a run: refused by index and both names, and never refused falsely."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoskit.runtime import CodeChanged, Effect, Run, open_run

Told = list[tuple[str, ...]]


class Stopped(BaseException):
    """Stands for a kill: nothing that a task catches."""


def attempt(
    store: Path, names: Sequence[str], *, stop_after: int = 99, ordered: bool = True
) -> list[str]:
    """Take these steps in one attempt, finish unless stopped; returns the ones that were called."""
    called: list[str] = []
    with open_run(store, inputs=None, ordered=ordered, durability="normal") as run:
        for name in names[:stop_after]:
            run.step(name, lambda effect: called.append(effect.step), keyed=True)
        if stop_after >= len(names):
            run.finish()
    return called


@pytest.mark.parametrize(
    ("now", "index", "names"),
    [
        ("ab", None, ()),
        ("xbcd", 0, ("x", "a")),
        ("bacd", 0, ("b", "a")),
        ("acbd", 1, ("c", "b")),
        ("axbcd", 1, ("x", "b")),
        ("acd", 1, ("c", "b")),
        ("bcd", 0, ("b", "a")),
        ("abx", 2, ("x", "c")),
    ],
    ids=["cut", "renamed", "swapped", "swapped later", "inserted", "removed", "first gone", "last"],
)
def test_a_changed_order_is_refused_by_index_and_names(
    store: Path, told: Told, now: str, index: int | None, names: tuple[str, ...]
) -> None:
    """Renamed, swapped, inserted, removed: refused before anything is called."""
    attempt(store, "abcd", stop_after=3)
    if index is None:
        with pytest.raises(CodeChanged, match=r"never took step 'c', .* at index 2"):
            attempt(store, now)
    else:
        with pytest.raises(CodeChanged) as caught:
            attempt(store, now)
        for part in (f"index {index}", *map(repr, names)):
            assert part in str(caught.value)
    assert told[-1][0] == "refused"
    assert attempt(store, "abcd") == ["d"]


@pytest.mark.parametrize("now", ["abcd", "abcxd", "abcx", "abcdefg"])
def test_what_comes_after_the_last_record_may_change(store: Path, now: str) -> None:
    """Steps that were not begun when the run was stopped are free."""
    attempt(store, "abcd", stop_after=3)
    assert attempt(store, now) == list(now[3:])


def test_a_step_that_came_back_with_an_exception_keeps_its_index(store: Path) -> None:
    """Trying a step again in the same attempt is not another step."""
    for _ in range(2):
        with open_run(store, inputs=None) as run:
            for name in "ab":
                with suppress(ConnectionError):
                    run.step(name, _fail, keyed=True)
                with suppress(ConnectionError):
                    run.step(name, _fail, keyed=True)
    assert attempt(store, "ab") == ["a", "b"]


def _fail(effect: Effect) -> None:
    raise ConnectionError(effect.step)


def test_a_task_that_skips_says_so(store: Path) -> None:
    """With ordered=False any order and any selection of steps is the task's own business."""
    attempt(store, "abcd", stop_after=3, ordered=False)
    assert attempt(store, "dxa", ordered=False) == ["d", "x"]


def test_steps_inside_a_step_do_not_count(store: Path) -> None:
    """Once the outer step is done its inner ones are not taken, and that is no change of code."""
    for again in (False, True):
        with open_run(store, inputs=None) as run:

            def outer(_: Effect, run: Run = run) -> int:
                return sum(run.step(f"inner/{n}", lambda _: 1) for n in range(3))

            assert run.step("outer", outer) == 3
            run.step("after", lambda _: 1)
            if again:
                run.finish()


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_threads_are_never_refused_for_their_order(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever order steps of other threads arrive in, however the run was stopped among them."""
    store = tmp_path_factory.mktemp("threads") / "run.db"
    for _ in range(3):
        order = data.draw(st.permutations(range(5)))
        many = data.draw(st.integers(0, 5))
        with open_run(store, inputs=None, durability="normal") as run:
            run.step("before", lambda _: 1)
            for index in order[:many]:
                thread = Thread(target=run.step, args=(f"t/{index}", lambda _: 1))
                thread.start()
                thread.join()
            run.step("after", lambda _: 1)


def test_a_pool_of_threads_is_never_refused(store: Path) -> None:
    """Real threads that race for the first place, resumed in another order."""
    for seed in range(4):
        names = [f"t/{n}" for n in range(20)]
        random.Random(seed).shuffle(names)
        with (
            open_run(store, inputs=None, durability="normal") as run,
            ThreadPoolExecutor(4) as pool,
        ):
            list(pool.map(lambda name, run=run: run.step(name, lambda _: name), names))


async def _one(_: Effect) -> int:
    await asyncio.sleep(0)
    return 1


async def _gathered(run: Run, order: Sequence[int]) -> None:
    await run.async_step("before", _one)
    await asyncio.gather(*(run.async_step(f"g/{n}", _one) for n in order))
    await run.async_step("after", _one)


@settings(deadline=None, max_examples=40)
@given(orders=st.lists(st.permutations(range(4)), min_size=2, max_size=3), inside=st.booleans())
def test_gathered_steps_are_never_refused_for_their_order(
    orders: list[list[int]], inside: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Steps in flight together have no order, whether the run was opened in the loop or before."""
    store = tmp_path_factory.mktemp("gathered") / "run.db"

    async def whole(order: list[int]) -> None:
        with open_run(store, inputs=None, durability="normal") as run:
            await _gathered(run, order)

    for order in orders:
        if inside:
            asyncio.run(whole(order))
        else:
            with open_run(store, inputs=None, durability="normal") as run:
                asyncio.run(_gathered(run, order))


def test_gathered_first_steps_are_never_refused(store: Path) -> None:
    """Also where nothing was taken before them, and the run was opened before the loop."""

    async def only(run: Run, order: Sequence[int]) -> None:
        await asyncio.gather(*(run.async_step(f"g/{n}", _one) for n in order))

    for order in ([0, 1, 2], [2, 0, 1]):
        with open_run(store, inputs=None) as run:
            asyncio.run(only(run, order))


@pytest.mark.parametrize("inside", [True, False])
def test_the_flow_of_a_task_is_held_to_its_order(store: Path, *, inside: bool) -> None:
    """Steps that the run's own task awaits one after the other are ordered like any others."""

    async def flow(run: Run, names: str) -> None:
        for name in names:
            await run.async_step(name, _one)

    async def whole(names: str) -> None:
        with open_run(store, inputs=None) as run:
            await flow(run, names)

    def attempt_async(names: str) -> None:
        if inside:
            asyncio.run(whole(names))
            return
        with open_run(store, inputs=None) as run:
            asyncio.run(flow(run, names))

    attempt_async("abc")
    with pytest.raises(CodeChanged, match=r"step 'b' at index 0.* step 'a'"):
        attempt_async("bac")


@settings(deadline=None, max_examples=60)
@given(
    names=st.lists(st.sampled_from("abcdef"), unique=True, min_size=1),
    now=st.lists(st.sampled_from("abcdef"), unique=True),
    stop=st.integers(0, 6),
)
def test_any_edit_is_refused_exactly_if_it_touches_what_is_recorded(
    names: list[str], now: list[str], stop: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The recorded steps must be a beginning of the new code's; then nothing is done twice."""
    store = tmp_path_factory.mktemp("edit") / "run.db"
    stop = min(stop, len(names) - 1)
    first: Any = attempt(store, names, stop_after=stop)
    assert first == names[:stop]
    if now[:stop] == first:
        assert attempt(store, now) == now[stop:]
    else:
        with pytest.raises(CodeChanged):
            attempt(store, now)
