"""Which trials go to one worker together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chaoskit.campaign.batches import MOST, singles, together
from chaoskit.model.points import WindowPoint
from chaoskit.model.schedule import Schedule, kill


def one(ordinal: int) -> Schedule:
    """A kill at one of many points."""
    return Schedule(((kill(WindowPoint("payments", "charge", ordinal, "applied")),),))


def two(first: int, second: int) -> Schedule:
    """And one more in the resume."""
    return one(first).then(kill(WindowPoint("payments", "charge", second, "applied")))


@given(st.lists(st.integers(0, 9), max_size=80), st.integers(1, 4))
def test_every_trial_is_in_one_batch_and_equal_states_share_it(
    states: list[int], workers: int
) -> None:
    """Nothing is lost, nothing is run twice, and no state is in two batches."""
    waiting = [(number, one(number + 1)) for number in range(len(states))]
    worlds = {str(s): f"{states[number]:02x}" for number, s in waiting if states[number]}
    batches = together(waiting, worlds, workers, whole=False)
    assert sorted(trial for batch in batches for trial in batch) == waiting
    for state in set(worlds.values()):
        holders = [b for b in batches if any(worlds.get(str(s)) == state for _, s in b)]
        assert len(holders) == 1


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(1, 4), st.booleans())
def test_beginnings_are_parted_only_where_that_may_be(
    sizes: list[int], workers: int, whole: bool
) -> None:
    """Whole: one worker has all that goes on from a beginning; else batches stay small."""
    pairs = [(b, k) for b, size in enumerate(sizes, 1) for k in range(1, size + 1)]
    waiting = [(number, two(*pair)) for number, pair in enumerate(pairs)]
    batches = together(waiting, {}, workers, whole=whole)
    assert sorted(trial for batch in batches for trial in batch) == waiting
    if whole:
        for beginning in {schedule.attempts[0] for _, schedule in waiting}:
            assert sum(any(s.attempts[0] == beginning for _, s in b) for b in batches) == 1
    else:
        assert all(len(batch) <= MOST for batch in batches)


def test_real_kills_go_one_by_one() -> None:
    """Nothing is shared between them, and each one's end is wanted soon."""
    waiting = [(number, one(number + 1)) for number in range(3)]
    assert singles(waiting) == [[trial] for trial in waiting]
