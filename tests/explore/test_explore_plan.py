"""Which schedules a campaign runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.explore.plan import (
    MEANING,
    MECHANISMS,
    Mechanism,
    first_wave,
    moments,
    next_wave,
    points,
    sweep,
)
from chaoskit.model.effects import Effect
from chaoskit.model.events import CallSeen, Event
from chaoskit.model.history import History
from chaoskit.model.points import WINDOWS, CrossingPoint, Point, TimePoint, WindowPoint, parse_point
from chaoskit.model.schedule import kill, parse_schedule
from tests.checkers.builder import Story, charge, mail, undisturbed

ADA, BOB = charge("ada"), charge("bob")
BOTH: tuple[Mechanism, ...] = ("windows", "crossings")


def texts(found: list[Point]) -> list[str]:
    """Points as text."""
    return [str(point) for point in found]


# The sweep of one run.


def test_every_window_and_crossing_is_listed_once_in_order() -> None:
    """As the run passed them: requests and looks with their three windows each, and crossings."""
    story = (
        Story()
        .starts()
        .passes("begun")
        .does(ADA, BOB)
        .passes("charged")
        .looks("payments", "search")
        .does(mail("ada"))
        .passes("charged", 2)
        .ends()
    )
    assert texts(points(story.history, BOTH)) == [
        "begun#1",
        "payments.charge#1.received",
        "payments.charge#1.applied",
        "payments.charge#1.answered",
        "payments.charge#2.received",
        "payments.charge#2.applied",
        "payments.charge#2.answered",
        "charged#1",
        "payments.search#1.received",
        "payments.search#1.applied",
        "payments.search#1.answered",
        "email.send#1.received",
        "email.send#1.applied",
        "email.send#1.answered",
        "charged#2",
    ]


RUNS = st.lists(st.sampled_from([ADA, BOB, mail("ada"), "begun", "charged"]), max_size=10)


def run(parts: list[Effect | str], *, attempt: int = 1) -> Story:
    """One run that does the effects and passes the crossings, in order."""
    story = Story()
    for _ in range(attempt - 1):
        story.starts().does(ADA).passes("begun").killed("begun#1")
    story.starts()
    for position, part in enumerate(parts):
        if isinstance(part, Effect):
            story.does(part)
        else:
            story.passes(part, parts[: position + 1].count(part))
    return story.ends()


@given(RUNS, st.integers(1, 3))
def test_the_points_are_those_of_one_attempt(parts: list[Effect | str], attempt: int) -> None:
    """Three for each request and one for each crossing of that attempt, none twice, each with a
    text that names it.
    """
    found = points(run(parts, attempt=attempt).history, BOTH, attempt)
    requests = [part for part in parts if isinstance(part, Effect)]
    assert len(found) == len(set(found)) == len(parts) + 2 * len(requests)
    assert [parse_point(text) for text in texts(found)] == found


@given(RUNS)
def test_the_three_windows_of_a_request_stand_together(parts: list[Effect | str]) -> None:
    """Received, applied, answered, of the same request."""
    windows = points(run(parts).history, ("windows",))
    for first in range(0, len(windows), 3):
        three = [p for p in windows[first : first + 3] if isinstance(p, WindowPoint)]
        assert tuple(p.window for p in three) == WINDOWS
        assert len({(p.service, p.operation, p.ordinal) for p in three}) == 1


@given(RUNS)
def test_each_mechanism_lists_its_own_points(parts: list[Effect | str]) -> None:
    """Windows and crossings together are both lists in one order; times are drawn elsewhere."""
    history = run(parts).history
    every = points(history, BOTH)
    assert points(history, ("windows",)) == [p for p in every if isinstance(p, WindowPoint)]
    assert points(history, ("crossings",)) == [p for p in every if isinstance(p, CrossingPoint)]
    assert points(history, ("times",)) == points(history, ()) == []


def test_an_attempt_that_never_was_has_no_points() -> None:
    """There is nothing to kill in it."""
    assert points(undisturbed(ADA).history, BOTH, 2) == []


# The sweep of two runs.


@given(RUNS)
def test_two_equal_runs_have_all_points_in_common(parts: list[Effect | str]) -> None:
    """In the order of the run, and none is odd."""
    history = run(parts).history
    assert sweep((history, run(parts).history), BOTH) == (points(history, BOTH), [])


@given(RUNS, RUNS)
def test_points_of_one_run_alone_are_odd(one: list[Effect | str], two: list[Effect | str]) -> None:
    """What both pass is tested, in the first one's order; what only one passes is told."""
    first, second = run(one).history, run(two).history
    common, odd = sweep((first, second), BOTH)
    mine, others = points(first, BOTH), points(second, BOTH)
    assert common == [point for point in mine if point in others]
    assert len(odd) == len(set(odd))
    assert set(odd) == set(mine) ^ set(others)


def told(*calls: CallSeen) -> History:
    """A run that makes these calls."""
    return History(tuple(Event(index, 0, call) for index, call in enumerate(calls)))


def test_chance_decides_of_no_point() -> None:
    """Whether a worker had ended by then, and how long a log's time stamps were, may differ between
    runs that pass the same calls: the points are those of both.
    """
    one = told(
        CallSeen(attempt=1, call="write(a)#1", alone=False, bytes=9000, cuts=(96, 8288)),
        CallSeen(attempt=1, call="write(b)#1"),
        CallSeen(attempt=1, call="write(c)#1"),
    )
    two = told(
        CallSeen(attempt=1, call="write(b)#1", alone=False),
        CallSeen(attempt=1, call="write(a)#1", bytes=8000, cuts=(90, 8282)),
        CallSeen(attempt=1, call="write(c)#1"),
    )
    common, odd = sweep((one, two), ("calls",))
    assert odd == []
    assert list(map(str, common)) == [
        *("write(a)#1", "write(a)#1+short:96", "write(a)#1+short:8288", "write(a)#1+after"),
        *("write(b)#1", "write(b)#1+after", "write(c)#1", "write(c)#1+after"),
    ]
    assert sweep((two, one, two), ("calls",))[1] == []
    short = told(*(seen for _, seen in one.of(CallSeen) if seen.call != "write(a)#1"))
    lost = list(map(str, sweep((one, short), ("calls",))[1]))
    assert len(lost) == 4
    assert all(text.startswith("write(a)#1") for text in lost)


def test_the_first_wave_is_one_kill_at_each_point() -> None:
    """In the order of the points."""
    found = points(run(["begun", ADA]).history, BOTH)
    assert [str(schedule) for schedule in first_wave(found)] == [f"kill@{p}" for p in found]
    assert first_wave([]) == []


# Random times.


@given(st.floats(0, 1000), st.integers(0, 200), st.integers())
def test_moments_are_different_ordered_and_within_the_run(
    seconds: float, number: int, seed: int
) -> None:
    """As many as asked for, or as many as there are milliseconds."""
    found = moments(seconds, number, seed)
    last = max(1, int(seconds * 1000))
    delays = [point.delay_ms for point in found if isinstance(point, TimePoint)]
    assert len(found) == len(delays) == min(number, last)
    assert delays == sorted(set(delays))
    assert all(1 <= delay <= last for delay in delays)


@given(st.floats(0, 1000), st.integers(0, 200), st.integers())
def test_moments_follow_from_the_seed(seconds: float, number: int, seed: int) -> None:
    """The same seed gives the same times, on every machine."""
    assert moments(seconds, number, seed) == moments(seconds, number, seed)


def test_other_seeds_give_other_moments() -> None:
    """Ten times out of a thousand are hardly ever the same ones."""
    assert len({tuple(moments(1.0, 10, seed)) for seed in range(20)}) == 20


def test_the_moments_of_a_seed_never_change() -> None:
    """A stored seed must mean the same times in later versions."""
    assert texts(moments(1.0, 3, 7)) == ["314ms", "645ms", "710ms"]


# Further kills.


def test_the_next_wave_kills_at_every_point_of_the_resume() -> None:
    """Each trial again, with one more kill: at the windows and crossings of its last attempt."""
    story = (
        Story()
        .starts()
        .does(ADA)
        .killed("payments.charge#1.answered")
        .starts()
        .passes("begun")
        .does(BOB)
        .ends()
    )
    assert [str(s) for s in next_wave({story.schedule: story.history}, BOTH)] == [
        "kill@payments.charge#1.answered / kill@begun#1",
        "kill@payments.charge#1.answered / kill@payments.charge#1.received",
        "kill@payments.charge#1.answered / kill@payments.charge#1.applied",
        "kill@payments.charge#1.answered / kill@payments.charge#1.answered",
    ]


@given(st.lists(st.tuples(RUNS, st.integers(2, 3)), max_size=3))
def test_the_next_wave_adds_exactly_the_points_of_the_resumes(
    trials: list[tuple[list[Effect | str], int]],
) -> None:
    """For any trials that all landed: their own faults, and then one of the points of the attempt
    after the last fault.
    """
    stories = [run(parts, attempt=attempt) for parts, attempt in trials]
    told = {story.schedule: story.history for story in stories}
    assert list(next_wave(told, BOTH)) == [
        schedule.then(kill(point))
        for schedule, history in told.items()
        for point in points(history, BOTH, len(schedule.attempts) + 1)
    ]


@pytest.mark.parametrize("schedule", ["kill@begun#1 / kill@begun#9", "kill@begun#1 + kill@9ms"])
def test_a_trial_whose_fault_did_not_land_is_not_gone_on_with(schedule: str) -> None:
    """Its resume is not the one that the schedule speaks of."""
    history = run([ADA, "begun"], attempt=2).history
    assert list(next_wave({parse_schedule(schedule): history}, BOTH)) == []


def test_a_resume_that_passes_nothing_gives_no_further_trials() -> None:
    """There is no point left to kill at."""
    story = Story().starts().does(ADA).killed("payments.charge#1.answered").starts().ends()
    assert list(next_wave({story.schedule: story.history}, BOTH)) == []
    assert list(next_wave({}, BOTH)) == []


def test_every_mechanism_says_what_it_covers_and_what_it_misses() -> None:
    """One sentence for each, which every run prints."""
    assert set(MEANING) == set(MECHANISMS)
    assert all(len(words.split()) > 5 for words in MEANING.values())
