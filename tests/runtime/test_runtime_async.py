"""Steps that are awaited: the same life, with several in flight."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoskit.runtime import DuplicateStep, Effect, OutcomeUnknown, UnstorableResult, open_run


async def never(effect: Effect) -> object:
    """A call that must not be made."""
    raise AssertionError(f"{effect.step} was called again")


async def cancelled(_: Effect) -> object:
    """A call that is cancelled while it waits."""
    raise asyncio.CancelledError


@settings(deadline=None)
@given(order=st.permutations(range(5)))
def test_results_belong_to_names_and_not_to_the_order_of_arrival(
    order: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whichever of several steps in flight comes back first, each resume gives each its own."""
    store = tmp_path_factory.mktemp("arrival") / "run.db"

    async def task(*, again: bool) -> list[object]:
        turns = [asyncio.Event() for _ in range(6)]
        turns[0].set()
        with open_run(store, inputs=None, durability="normal") as run:

            async def arrive(effect: Effect) -> object:
                index = int(effect.step.removeprefix("mail/"))
                place = order.index(index)
                await turns[place].wait()
                turns[place + 1].set()
                return f"content {index}"

            return await asyncio.gather(
                *(run.async_step(f"mail/{n}", never if again else arrive) for n in range(5))
            )

    expected = [f"content {n}" for n in range(5)]
    assert asyncio.run(task(again=False)) == expected
    assert asyncio.run(task(again=True)) == expected


@pytest.mark.parametrize("kind", ["async", "plain"])
@pytest.mark.parametrize("found", ["ch_1", None])
def test_a_look_up_may_be_awaited_or_not(store: Path, kind: str, found: str | None) -> None:
    """Both kinds of look-up decide a begun step in the same way."""

    async def ask(_: Effect) -> str | None:
        return found

    async def pay(effect: Effect) -> str:
        return f"attempt {effect.attempt}"

    async def task() -> object:
        with open_run(store, inputs=None) as run:
            with pytest.raises(asyncio.CancelledError):
                await run.async_step("pay", cancelled)
            look_up = ask if kind == "async" else lambda _: found
            return await run.async_step("pay", pay, look_up=look_up)

    assert asyncio.run(task()) == (found or "attempt 2")


def test_a_cancelled_step_is_in_doubt(store: Path) -> None:
    """Cancelling a step that waits for its service is no proof that nothing happened."""

    async def task() -> None:
        waiting = asyncio.Event()
        with open_run(store, inputs=None) as run:

            async def pay(_: Effect) -> None:
                waiting.set()
                await asyncio.Event().wait()

            step = asyncio.create_task(run.async_step("pay", pay))
            await waiting.wait()
            step.cancel()
            with pytest.raises(asyncio.CancelledError):
                await step
            assert run.in_doubt == ("pay",)
            with pytest.raises(OutcomeUnknown):
                await run.async_step("pay", never)

    asyncio.run(task())


def test_a_name_in_flight_is_taken(store: Path) -> None:
    """Two steps of one name at once are an error, and only one of them is called."""
    calls: list[str] = []

    async def pay(effect: Effect) -> str:
        calls.append(effect.step)
        return "paid"

    async def task() -> list[object]:
        with open_run(store, inputs=None) as run:
            steps = [run.async_step("pay", pay) for _ in range(2)]
            return list(await asyncio.gather(*steps, return_exceptions=True))

    first, second = asyncio.run(task())
    assert first == "paid"
    assert isinstance(second, DuplicateStep)
    assert calls == ["pay"]


def test_a_coroutine_in_a_plain_step_is_pointed_out(store: Path) -> None:
    """Forgetting the async variant is an error with the fix, not a stored nonsense."""
    with open_run(store, inputs=None) as run:
        made = never(Effect.__new__(Effect))
        with pytest.raises(UnstorableResult, match="use async_step"):
            _ = run.step("pay", lambda _: made)
        made.close()


def test_sync_and_async_steps_share_their_records(store: Path) -> None:
    """A step may become async between two attempts: its record is the same."""

    async def resume() -> object:
        with open_run(store, inputs=None) as run:
            return await run.async_step("pay", never)

    with open_run(store, inputs=None) as run:
        run.step("pay", lambda _: "paid")
    assert asyncio.run(resume()) == "paid"
