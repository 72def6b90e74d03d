"""The endless stream of random schedules."""

from __future__ import annotations

from collections import Counter
from itertools import islice, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.explore.soak import schedules
from chaoskit.model.actions import KillLeader, Late
from chaoskit.model.points import CrossingPoint, Point, TimePoint, WindowPoint
from chaoskit.model.schedule import Fault, Schedule, kill, parse_schedule

CHARGES: list[Point] = [WindowPoint("payments", "charge", n, "applied") for n in range(1, 101)]
LATE = Fault(Late(1), WindowPoint("payments", "charge", 1, "received"))
LEADER = Fault(KillLeader(), CrossingPoint("charge.done", 1))

POINTS = st.lists(
    st.builds(CrossingPoint, st.sampled_from(["begun", "done"]), st.integers(1, 9)), max_size=12
)
PINNED = [
    "kill@142ms",
    "kill@payments.charge#1.applied / kill@707ms / kill@payments.charge#61.applied",
    "kill@911ms",
    "kill@payments.charge#98.applied / kill@payments.charge#73.applied",
]

FAULTS = st.lists(st.sampled_from([LATE, LEADER]), max_size=3)
SECONDS = st.floats(0, 100)
KILLS = st.integers(1, 4)


def first(
    number: int,
    points: list[Point],
    seconds: float = 1.0,
    seed: int = 0,
    kills_max: int = 3,
    faults: list[Fault] | None = None,
) -> list[Schedule]:
    """The first ``number`` of a stream."""
    return list(islice(schedules(points, seconds, seed, kills_max, faults or []), number))


def faults_of(found: list[Schedule]) -> list[Fault]:
    """All faults of all schedules."""
    return [fault for schedule in found for attempt in schedule.attempts for fault in attempt]


@given(POINTS, SECONDS, st.integers(), KILLS, FAULTS)
def test_every_schedule_is_made_of_known_faults_and_times_within_the_run(
    points: list[Point], seconds: float, seed: int, kills_max: int, faults: list[Fault]
) -> None:
    """Any number of attempts up to the limit, one fault in each, and a text that names it."""
    for schedule in first(50, points, seconds, seed, kills_max, faults):
        assert 1 <= len(schedule.attempts) <= kills_max
        assert parse_schedule(str(schedule)) == schedule
        for (fault,) in schedule.attempts:
            if isinstance(fault.point, TimePoint):
                assert fault == kill(fault.point)
                assert 1 <= fault.point.delay_ms <= max(1, int(seconds * 1000))
            else:
                assert fault in faults or fault == kill(fault.point)
                assert fault in faults or fault.point in points


@given(POINTS, SECONDS, st.integers(), KILLS, FAULTS)
def test_a_stream_follows_from_its_arguments(
    points: list[Point], seconds: float, seed: int, kills_max: int, faults: list[Fault]
) -> None:
    """The same ones give the same schedules, however many of them are taken."""
    long = first(60, points, seconds, seed, kills_max, faults)
    assert first(30, points, seconds, seed, kills_max, faults) == long[:30]


def test_other_seeds_give_other_streams() -> None:
    """Ten schedules of a hundred points are hardly ever the same ones."""
    assert len({tuple(first(10, CHARGES, seed=seed)) for seed in range(20)}) == 20


def test_the_stream_of_a_seed_never_changes() -> None:
    """A stored seed must mean the same schedules in later versions."""
    assert [str(schedule) for schedule in first(4, CHARGES, seed=7)] == PINNED


@given(
    st.lists(st.builds(CrossingPoint, st.just("a"), st.integers(1, 5)), min_size=1, max_size=4),
    st.integers(),
    st.integers(1, 3),
    FAULTS,
)
def test_no_exact_schedule_comes_again_before_all_were_given(
    points: list[Point], seed: int, kills_max: int, faults: list[Fault]
) -> None:
    """Schedules without a time come in rounds: each round holds every one of them once."""
    known = {*map(kill, points), *faults}
    every = {
        Schedule(tuple((fault,) for fault in chosen))
        for number in range(1, kills_max + 1)
        for chosen in product(known, repeat=number)
    }
    stream = schedules(points, 1.0, seed, kills_max, faults)
    exact = (schedule for schedule in stream if not schedule.timed)
    for _ in range(2):
        assert set(islice(exact, len(every))) == every


@given(st.integers(), st.integers(1, 3), SECONDS)
def test_where_nothing_is_known_every_fault_is_a_time(
    seed: int, kills_max: int, seconds: float
) -> None:
    """A task that no service or probe sees can still be killed at random."""
    found = first(30, [], seconds, seed, kills_max)
    assert all(isinstance(fault.point, TimePoint) for fault in faults_of(found))


def test_the_shares_are_the_documented_ones() -> None:
    """One attempt is twice as frequent as two, two as three; one fault in four is timed."""
    many: list[Point] = [CrossingPoint("a", n) for n in range(1, 100_001)]
    found = first(20_000, many, seed=1)
    attempts = Counter(len(schedule.attempts) for schedule in found if schedule.timed)
    # of the timed ones: an attempt more is half as likely, but more likely to hold a time
    one, two, three = (4 * 0.25, 2 * (1 - 0.75**2), 1 - 0.75**3)
    total = one + two + three
    for number, share in ((1, one), (2, two), (3, three)):
        assert attempts[number] / attempts.total() == pytest.approx(share / total, abs=0.02)
    timed = sum(isinstance(fault.point, TimePoint) for fault in faults_of(found))
    assert timed / len(faults_of(found)) == pytest.approx(0.25, abs=0.01)


def test_every_known_fault_is_drawn_about_equally_often() -> None:
    """Points and ready faults alike, in every attempt."""
    known = [*map(kill, CHARGES[:8]), LATE, LEADER]
    found = first(20_000, CHARGES[:8], seed=2, faults=[LATE, LEADER])
    for attempt in (1, 2, 3):
        drawn = Counter(fault for schedule in found for fault in schedule.faults_of(attempt))
        counts = [drawn[fault] for fault in known]
        assert min(counts) > 0.7 * sum(counts) / len(known)


def test_times_are_spread_over_the_whole_run() -> None:
    """Each tenth of it gets about a tenth of them."""
    found = first(10_000, [], seconds=1.0, seed=3, kills_max=1)
    delays = [f.point.delay_ms for f in faults_of(found) if isinstance(f.point, TimePoint)]
    tenths = Counter((delay - 1) // 100 for delay in delays)
    assert set(tenths) == set(range(10))
    assert min(tenths.values()) > 800


def test_a_point_given_twice_is_not_drawn_twice_as_often() -> None:
    """Repeated points, and ready faults that are kills at the same point, are one fault."""
    plain = first(200, CHARGES)
    assert first(200, CHARGES * 2, faults=[kill(CHARGES[0])]) == plain


def test_many_points_and_many_kills_cost_nothing_until_they_are_drawn() -> None:
    """There are 10 ** 60 schedules here, and the first ones come all the same."""
    points: list[Point] = [CrossingPoint("a", n) for n in range(1, 1001)]
    found = first(200, points, kills_max=20)
    assert len(set(found)) == 200


@pytest.mark.parametrize("kills_max", [0, -1])
def test_a_soak_without_kills_is_refused_at_once(kills_max: int) -> None:
    """When it is asked for, and not when the first schedule is."""
    with pytest.raises(ValueError, match="at least once"):
        schedules(CHARGES, 1.0, 0, kills_max)
