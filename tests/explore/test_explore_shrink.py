"""Shrinking, with simulated trials: predicates that say whether a candidate shows the finding."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from chaoskit.explore.shrink import Candidate, Shrinker, keeps
from chaoskit.model.actions import Kill, KillLeader, Late
from chaoskit.model.points import WINDOWS, CrossingPoint, Point, TimePoint, WindowPoint, parse_point
from chaoskit.model.schedule import Fault, Schedule, before, kill, parse_schedule

Shows = Callable[[Candidate], bool]
Cases = tuple[Callable[[], Shrinker], int, Shows]

ROUND = [*(f"payments.charge#{{}}.{window}" for window in WINDOWS), "charged#{}"]
WORLD = [parse_point(text.format(n)) for n in range(1, 41) for text in ROUND]
"""What a task of forty steps passes."""


def candidate(text: str, take: int | None = None) -> Candidate:
    """The candidate with that schedule."""
    return Candidate(parse_schedule(text), take)


def run(shrinker: Shrinker, shows: Shows) -> list[Candidate]:
    """Everything that is proposed, told to the end."""
    proposed = []
    while (proposal := shrinker.proposal) is not None:
        proposed.append(proposal)
        shrinker.tell(shows(proposal))
    return proposed


def place(fault: Fault, *, of: Sequence[Point] = WORLD) -> int:
    """Where a fault stands in the order."""
    return of.index(fault.point)


# Any start, and any predicate.

EXACT = st.sampled_from(WORLD) | st.builds(CrossingPoint, st.just("unknown"), st.integers(1, 3))
TIMES = st.builds(TimePoint, st.integers(0, 20))
LATE = st.builds(
    lambda n: Fault(Late(1), WindowPoint("payments", "charge", n, "received")), st.integers(1, 40)
)
FAULTS = st.builds(Fault, st.sampled_from([Kill(), KillLeader()]), EXACT | TIMES) | LATE
SCHEDULES = st.lists(st.lists(FAULTS, max_size=3).map(tuple), max_size=5).map(
    lambda attempts: Schedule(tuple(attempts))
)
STARTS = st.builds(Candidate, SCHEDULES, st.none() | st.integers(1, 40))
ORDERS = st.sampled_from([[], [WORLD], [WORLD, WORLD[60:]], [WORLD[::-1], [], WORLD[:9]]])
ITEMS = st.none() | st.just(40)


@st.composite
def predicates(draw: st.DrawFn) -> Shows:
    """Ways in which a finding may hang on a candidate, from lawful to none at all."""
    salt, share = draw(st.integers()), draw(st.integers(0, 256))
    kills, take = draw(st.integers(0, 3)), draw(st.integers(0, 40))
    kinds = draw(st.sets(st.sampled_from([*WINDOWS, "charged", "unknown", "ms"])))

    def chance(case: Candidate) -> bool:
        return hashlib.sha256(f"{salt} {case}".encode()).digest()[0] < share

    def lawful(case: Candidate) -> bool:
        text = str(case.schedule)
        enough = case.schedule.faults >= kills and (case.take is None or case.take >= take)
        return enough and all(kind in text for kind in kinds)

    def both(case: Candidate) -> bool:
        return chance(case) and lawful(case)

    every: list[Shows] = [chance, lawful, both, lambda _: True]
    return draw(st.sampled_from(every))


@st.composite
def shrinkers(draw: st.DrawFn) -> Cases:
    """How to make one shrinker again and again, its bound, and what shows the finding."""
    start, orders, items = draw(STARTS), draw(ORDERS), draw(ITEMS)
    most, shows = draw(st.sampled_from([0, 5, 30, 2000, 2000, 2000])), draw(predicates())
    timed = [f for faults in start.schedule.attempts for f in faults]
    landed = {
        f: draw(EXACT) for f in timed if isinstance(f.point, TimePoint) and draw(st.booleans())
    }

    def make() -> Shrinker:
        return Shrinker(start, orders=orders, landed=landed, items=items, most=most)

    return make, most, lambda case: case == start or shows(case)


@given(shrinkers())
def test_the_result_still_shows_the_finding_and_is_no_larger(case: Cases) -> None:
    """In the documented order; where it is not the start itself, it is smaller."""
    make, _, shows = case
    shrinker = make()
    start = shrinker.smallest
    run(shrinker, shows)
    assert shows(shrinker.smallest)
    if shrinker.smallest != start:
        assert shrinker.size(shrinker.smallest) < shrinker.size(start)


@given(shrinkers())
def test_every_proposal_is_new_smaller_and_a_trial_that_can_be_run(case: Cases) -> None:
    """Smaller than all that is known to show it, with a text that names it, and with a fault where
    the start had one.
    """
    make, _, shows = case
    shrinker = make()
    start, known = shrinker.smallest, {shrinker.smallest}
    while (proposal := shrinker.proposal) is not None:
        assert proposal not in known
        assert shrinker.size(proposal) < shrinker.size(shrinker.smallest)
        assert parse_schedule(str(proposal.schedule)) == proposal.schedule
        assert proposal.schedule.faults >= min(1, start.schedule.faults)
        assert proposal.take is None or proposal.take >= 1
        known.add(proposal)
        shrinker.tell(shows(proposal))


@given(shrinkers())
def test_the_result_is_a_minimum_among_its_single_drops(case: Cases) -> None:
    """Unless it was cut off: no attempt and no fault can go, and no item, without the finding."""
    make, _, shows = case
    shrinker = make()
    run(shrinker, shows)
    if shrinker.cut_off:
        event("cut off")
        return
    event("searched to the end")
    small = shrinker.smallest
    for drop in single_drops(small):
        assert drop == small or not drop.schedule.faults or not shows(drop)
    if small.take is not None and small.take > 1:
        assert not shows(Candidate(small.schedule, small.take - 1))


def single_drops(of: Candidate) -> list[Candidate]:
    """Every candidate with one attempt or one fault fewer."""
    attempts = of.schedule.attempts
    drops = [attempts[:n] + attempts[n + 1 :] for n in range(len(attempts))]
    drops += [
        (*attempts[:n], faults[:i] + faults[i + 1 :], *attempts[n + 1 :])
        for n, faults in enumerate(attempts)
        for i in range(len(faults))
    ]
    return [Candidate(Schedule(trimmed(drop)), of.take) for drop in drops]


def trimmed(attempts: tuple[tuple[Fault, ...], ...]) -> tuple[tuple[Fault, ...], ...]:
    """Without the attempts at the end that suffer nothing, which mean nothing."""
    while attempts and not attempts[-1]:
        attempts = attempts[:-1]
    return attempts


@given(shrinkers())
def test_shrinking_ends_within_its_bound(case: Cases) -> None:
    """No more proposals than asked for, whatever is answered."""
    make, most, shows = case
    assert len(run(make(), shows)) <= most


@given(shrinkers())
def test_the_same_answers_give_the_same_proposals(case: Cases) -> None:
    """Nothing but the arguments and the answers decides."""
    make, _, shows = case
    one, other = make(), make()
    assert run(one, shows) == run(other, shows)
    assert one.smallest == other.smallest


@given(STARTS, ORDERS, st.integers(0, 30))
def test_the_bound_cuts_off_what_would_have_come(
    start: Candidate, orders: list[list[Point]], most: int
) -> None:
    """With a bound the proposals are the first ones of those without it, and it says so."""
    every = run(Shrinker(start, orders=orders, most=10**6), lambda _: False)
    bound = Shrinker(start, orders=orders, most=most)
    assert run(bound, lambda _: False) == every[:most]
    assert bound.cut_off == (len(every) > most)


@given(STARTS, ORDERS)
def test_if_nothing_smaller_shows_it_the_start_stays(
    start: Candidate, orders: list[list[Point]]
) -> None:
    """What is not known to show the finding is never the result."""
    shrinker = Shrinker(start, orders=orders, items=40, most=10**6)
    run(shrinker, lambda _: False)
    assert shrinker.smallest == start


@given(STARTS)
def test_if_everything_shows_it_one_fault_at_the_earliest_point_is_left(start: Candidate) -> None:
    """In the first attempt, with one item."""
    shrinker = Shrinker(start, orders=[WORLD], items=40, most=10**6)
    run(shrinker, lambda _: True)
    small = shrinker.smallest
    assert small.take == 1
    assert small.schedule.faults == len(small.schedule.attempts) == min(1, start.schedule.faults)
    for faults in small.schedule.attempts:
        assert faults[0].point == WORLD[0]


# What a resume is.

ACTION_OF_A_RESUME = "clock:+7d", "damage:torn:run.db", "change:price", "resumers:2"


@pytest.mark.parametrize(
    ("start", "smaller", "kept"),
    [
        *[(f"kill@x#1 / {done}", done, False) for done in ACTION_OF_A_RESUME],
        *[(f"kill@x#1 / {done}", f"{done} + kill@x#1", False) for done in ACTION_OF_A_RESUME],
        *[(f"{done} + kill@x#1", done, True) for done in ACTION_OF_A_RESUME],
        ("change:price + kill@x#1 / change:price", "change:price", True),
        ("kill@x#2 / kill@x#1 / clock:+7d", "kill@x#1 / clock:+7d", True),
        ("clock:+1d + kill@x#2 / clock:+7d", "clock:+7d", False),
        ("kill@x#1 / down:2@payments.*#*", "down:2@payments.*#*", True),
        ("kill@x#1 / kill@x#2", "kill@x#2", True),
        ("kill@x#1 / kill@x#2", "none", True),
    ],
)
def test_what_is_done_before_a_resume_stays_before_one(
    start: str, smaller: str, kept: bool
) -> None:
    """In the first attempt it would be another start; what services do may be moved there."""
    assert keeps(parse_schedule(start), parse_schedule(smaller)) is kept


PRELUDES = st.sampled_from([before(text) for text in ACTION_OF_A_RESUME])


@given(
    st.lists(st.lists(FAULTS | PRELUDES, max_size=3).map(tuple), min_size=1, max_size=4),
    predicates(),
)
def test_no_proposal_moves_a_resume_to_the_start(
    attempts: list[tuple[Fault, ...]], shows: Shows
) -> None:
    """Whatever is answered, the first attempt begins as it did, or with less done before it."""
    start = Schedule(trimmed(tuple(attempts)))
    shrinker = Shrinker(Candidate(start), orders=[WORLD])
    for proposal in run(shrinker, shows):
        first = [fault for fault in proposal.schedule.faults_of(1) if fault.is_prelude]
        assert all(fault in start.faults_of(1) for fault in first)


def test_a_resume_on_a_changed_world_keeps_its_kill() -> None:
    """Where everything shows the finding, the change is shrunk away and not moved to the start."""
    shrinker = Shrinker(candidate("kill@charged#2 / change:price"), orders=[WORLD])
    proposed = [str(case.schedule) for case in run(shrinker, lambda _: True)]
    assert "change:price" not in proposed
    assert str(shrinker.smallest.schedule) == f"kill@{WORLD[0]}"


# What is tried first.


def test_fewer_kills_come_first_and_later_ones_go_first() -> None:
    """Attempts from the end, then single faults from the end, and only then points and items."""
    shrinker = Shrinker(
        candidate("kill@charged#1 + kill@charged#2 / kill@charged#3"), orders=[WORLD], items=4
    )
    proposed = [str(case.schedule) for case in run(shrinker, lambda _: False)]
    assert proposed[:6] == [
        "kill@charged#1 + kill@charged#2",
        "kill@charged#3",
        "kill@charged#1 / kill@charged#3",
        "kill@charged#2 / kill@charged#3",
        "kill@payments.charge#1.received + kill@charged#2 / kill@charged#3",
        "kill@payments.charge#1.applied + kill@charged#2 / kill@charged#3",
    ]


def test_a_storm_of_kills_is_halved_before_it_is_thinned() -> None:
    """Of 64 kills of which one matters, few trials find it."""
    start = Candidate(Schedule(tuple((kill(CrossingPoint("charged", n)),) for n in range(64))))
    shrinker = Shrinker(start)
    proposed = run(shrinker, lambda case: "charged#23" in str(case.schedule))
    assert str(shrinker.smallest.schedule) == "kill@charged#23"
    assert len(proposed) < 30


@given(st.integers(1, 40), st.integers(1, 40))
def test_a_window_that_fails_in_every_round_ends_at_the_first_round(n: int, take: int) -> None:
    """The usual fault: applied and not recorded, whichever charge; one item is enough."""
    start = candidate(f"kill@payments.charge#{n}.applied / kill@charged#2", take=max(n, take))
    shrinker = Shrinker(start, orders=[WORLD])

    def shows(case: Candidate) -> bool:
        points = [fault.point for fault in case.schedule.faults_of(1)]
        return any(
            isinstance(point, WindowPoint)
            and point.window == "applied"
            and case.take is not None
            and point.ordinal <= case.take
            for point in points
        )

    proposed = run(shrinker, shows)
    assert shrinker.smallest == candidate("kill@payments.charge#1.applied", 1)
    assert len(proposed) < 20


@given(st.integers(0, len(WORLD) - 1), st.integers(0, len(WORLD) - 1))
def test_where_all_points_after_one_fail_the_earliest_of_them_is_found(a: int, b: int) -> None:
    """A finding that needs some progress first: the earliest point that has it."""
    least, at = sorted((a, b))
    shrinker = Shrinker(Candidate(Schedule(((kill(WORLD[at]),),))), orders=[WORLD])
    run(shrinker, lambda case: place(case.schedule.attempts[0][0]) >= least)
    assert str(shrinker.smallest.schedule) == f"kill@{WORLD[least]}"


@given(st.integers(1, 40), st.integers(1, 40))
def test_where_fewer_items_suffice_the_fewest_are_kept(a: int, b: int) -> None:
    """By cuts of halves, whatever the number that is needed."""
    needed, items = sorted((a, b))
    shrinker = Shrinker(candidate("kill@charged#1"), items=items)
    proposed = run(shrinker, lambda case: (case.take or items) >= needed)
    assert (shrinker.smallest.take or items) == needed
    assert len(proposed) <= 12


def test_an_input_whose_length_is_unknown_is_kept_whole() -> None:
    """There is nothing to halve."""
    assert run(Shrinker(candidate("kill@charged#1")), lambda _: True) == []


def test_two_kills_that_need_each_other_both_stay() -> None:
    """Each at its earliest, as far as an order is known for its attempt."""
    start = candidate("kill@charged#9 / kill@charged#3 / kill@charged#9 / kill@charged#7")

    def shows(case: Candidate) -> bool:
        return case.schedule.faults >= 2 and all(
            isinstance(fault.point, CrossingPoint)
            for attempt in case.schedule.attempts
            for fault in attempt
        )

    shrinker = Shrinker(start, orders=[WORLD])
    run(shrinker, shows)
    assert str(shrinker.smallest.schedule) == "kill@charged#1 / kill@charged#3"
    shrinker = Shrinker(start, orders=[WORLD, WORLD])
    run(shrinker, shows)
    assert str(shrinker.smallest.schedule) == "kill@charged#1 / kill@charged#1"


def test_a_fault_keeps_its_action_and_moves_only_to_where_that_can_be_done() -> None:
    """Only a request can land late; what kills the leader goes on to kill the leader."""
    shrinker = Shrinker(candidate("late:2@payments.charge#9.received"), orders=[WORLD])
    proposed = run(shrinker, lambda _: False)
    assert {str(case.schedule) for case in proposed} == {
        f"late:2@payments.charge#{n}.received" for n in range(1, 9)
    }
    shrinker = Shrinker(candidate("kill-leader@charged#9"), orders=[WORLD])
    run(shrinker, lambda _: True)
    assert str(shrinker.smallest.schedule) == "kill-leader@payments.charge#1.received"


# Times.


def test_a_time_becomes_the_nearest_exact_point_that_shows_it() -> None:
    """The last point that was passed, the one after it, the one before, and so on outwards."""
    start = candidate("kill@250ms")
    near = {kill(TimePoint(250)): parse_point("charged#20")}
    shrinker = Shrinker(start, orders=[WORLD], landed=near)
    assert [str(case.schedule) for case in run(shrinker, lambda _: False)] == [
        "kill@charged#20",
        "kill@payments.charge#21.received",
        "kill@payments.charge#20.answered",
        "kill@payments.charge#21.applied",
        "kill@payments.charge#20.applied",
        "kill@payments.charge#21.answered",
        "kill@payments.charge#20.received",
        "kill@charged#21",
    ]


def test_a_time_in_an_attempt_without_an_order_becomes_the_point_where_it_landed() -> None:
    """That one alone is known."""
    start = candidate("kill@charged#1 / kill@70ms")
    shrinker = Shrinker(start, landed={kill(TimePoint(70)): parse_point("charged#3")})
    proposed = [str(case.schedule) for case in run(shrinker, lambda _: False)]
    assert proposed == [
        "kill@charged#1",
        "kill@70ms",
        "- / kill@70ms",
        "kill@charged#1 / kill@charged#3",
    ]


def test_a_time_that_landed_nobody_knows_where_is_tried_all_over_the_order() -> None:
    """Eight points, from the first to the last; and it stays a time where none shows it."""
    shrinker = Shrinker(candidate("kill@250ms"), orders=[WORLD])
    proposed = run(shrinker, lambda _: False)
    points = [case.schedule.attempts[0][0] for case in proposed]
    assert len(points) == 8
    assert points == sorted(points, key=place)
    assert (place(points[0]), place(points[-1])) == (0, len(WORLD) - 1)
    assert str(shrinker.smallest.schedule) == "kill@250ms"


def test_a_time_is_not_replaced_by_another_time() -> None:
    """Neither where one is said to have landed at one, nor where an order holds times."""
    at = {kill(TimePoint(250)): TimePoint(100)}
    assert run(Shrinker(candidate("kill@250ms"), landed=at), lambda _: True) == []
    times: list[Point] = [TimePoint(1), TimePoint(2)]
    assert run(Shrinker(candidate("kill@250ms"), orders=[times]), lambda _: True) == []


# The order in which candidates are compared.


def test_candidates_are_compared_in_the_documented_order() -> None:
    """Each of these is smaller than the next one."""
    shrinker = Shrinker(candidate("none"), orders=[WORLD, WORLD], items=40)
    ascending = [
        candidate("none"),
        candidate("kill@payments.charge#1.received", 1),
        candidate("kill@payments.charge#1.received", 39),
        candidate("kill@payments.charge#1.received"),
        candidate("kill@payments.charge#1.applied", 1),
        candidate("kill@charged#40", 1),
        candidate("kill@unknown#1", 1),
        candidate("kill@1ms", 1),
        candidate("- / kill@charged#1", 1),
        candidate("kill@charged#1 + kill@charged#2", 1),
        candidate("kill@charged#1 / kill@charged#1", 1),
        candidate("kill@charged#1 / kill@charged#2", 1),
        candidate("kill@charged#2 / kill@charged#1", 1),
    ]
    sizes = [shrinker.size(case) for case in ascending]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) == len(sizes)


# Telling.


def test_what_was_not_asked_cannot_be_told() -> None:
    """After the end there is no proposal to answer."""
    shrinker = Shrinker(candidate("kill@charged#1"))
    assert shrinker.proposal is None
    with pytest.raises(ValueError, match="has ended"):
        shrinker.tell(True)


def test_the_smallest_is_known_at_any_time() -> None:
    """Whoever stops early has the best so far."""
    shrinker = Shrinker(candidate("kill@charged#1 / kill@charged#2 / kill@charged#3"))
    shrinker.tell(True)
    assert str(shrinker.smallest.schedule) == "kill@charged#1 / kill@charged#2"
    shrinker.tell(False)
    assert str(shrinker.smallest.schedule) == "kill@charged#1 / kill@charged#2"
