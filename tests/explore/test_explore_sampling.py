"""Samples: some schedules, in which every target has its turn."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from chaoskit.explore.sampling import PHASES, draw, sample, target_of
from chaoskit.model.points import CallPoint, TimePoint
from chaoskit.model.schedule import Schedule, kill
from tests.model.values import POINTS

SCHEDULES = [Schedule(((kill(TimePoint(ms)),),)) for ms in range(50)]


@given(st.integers(0, 50), st.none() | st.integers(0, 60), st.integers())
def test_a_sample_is_some_of_them_in_their_own_order(
    length: int, most: int | None, seed: int
) -> None:
    """At most as many as asked for, none twice; all of them where there is no limit."""
    every = SCHEDULES[:length]
    found = sample(every, most, seed)
    assert len(found) == (length if most is None else min(most, length))
    assert found == [schedule for schedule in every if schedule in found]
    assert found == sample(every, most, seed)


def test_other_seeds_give_other_samples() -> None:
    """Ten out of fifty are hardly ever the same ones."""
    samples = {tuple(map(str, sample(SCHEDULES, 10, seed))) for seed in range(20)}
    assert len(samples) == 20


def test_every_schedule_can_be_in_a_sample() -> None:
    """No position is left out by the way in which they are drawn."""
    seen = {schedule for seed in range(200) for schedule in sample(SCHEDULES, 5, seed)}
    assert seen == set(SCHEDULES)


def calls(call: str, target: str, number: int) -> list[Schedule]:
    """A kill at each of so many calls on one target."""
    return [Schedule(((kill(CallPoint(call, target, n)),),)) for n in range(1, number + 1)]


@given(
    every=st.lists(POINTS.map(lambda point: Schedule(((kill(point),),))), max_size=40, unique=True),
    more=st.integers(0, 5),
    seed=st.integers(),
)
def test_every_target_is_in_a_sample_that_has_room_for_it(
    every: list[Schedule], more: int, seed: int
) -> None:
    """With at least as many trials as there are targets none of them is left out, and none has two
    more trials than another one that has some left.
    """
    sizes = Counter(map(target_of, every))
    taken = Counter(map(target_of, sample(every, len(sizes) + more, seed)))
    assert taken.keys() == sizes.keys()
    left = [taken[target] for target in sizes if taken[target] < sizes[target]]
    assert not left or max(taken.values()) <= min(left) + 1


@given(st.integers())
def test_a_database_does_not_drown_the_one_write_that_matters(seed: int) -> None:
    """Of a hundred calls on a log, many numbered files and one record, a few trials have them all,
    and those of the log are of each kind and each phase.
    """
    files = [schedule for n in range(30) for schedule in calls("write", f"part-{n}", 1)]
    log = calls("pwrite", "run.db-wal", 100)
    every = [*files, *log[:50], *calls("fdatasync", "run.db-wal", 4), *log[50:]]
    every += calls("rename", "a.tmp->a", 1)
    found = sample(every, 3, seed)
    assert Counter(map(target_of, found)).keys() >= {"run.db-wal", "a.tmp->a"}
    found = [s for s in sample(every, 40, seed) if target_of(s) == "run.db-wal"]
    assert len(found) == 40 - 30 - 1
    assert sum("fdatasync" in str(schedule) for schedule in found) == 4
    places = {every.index(s) * PHASES // len(every) for s in found if "pwrite" in str(s)}
    assert len(places) == len({every.index(s) * PHASES // len(every) for s in log})


@given(st.integers(0, 40), st.integers(0, 12), st.integers())
def test_what_is_drawn_from_a_stream_is_in_order_and_counted(
    number: int, most: int, seed: int
) -> None:
    """All of it where there is room; each once; the same for one seed."""
    drawn, total = draw(iter(range(number)), most, seed)
    assert total == number
    assert len(drawn) == min(number, most)
    assert drawn == sorted(set(drawn))
    assert set(drawn) <= set(range(number))
    assert (drawn, total) == draw(iter(range(number)), most, seed)


def test_every_item_of_a_stream_is_as_likely_as_another() -> None:
    """Over many seeds the first and the last are drawn about as often."""
    met = Counter(item for seed in range(600) for item in draw(range(6), 2, seed)[0])
    assert all(150 < met[item] < 250 for item in range(6)), met
