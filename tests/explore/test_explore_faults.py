"""Which trials are made of other faults than a kill."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.explore.faults import (
    EACH,
    FAULT_KINDS,
    Ground,
    at_points,
    check_changes,
    preludes,
    schedules,
)
from chaoskit.explore.soak import schedules as soak
from chaoskit.model.actions import Beside
from chaoskit.model.changes import Change
from chaoskit.model.errors import UsageError
from chaoskit.model.points import CallPoint, WindowPoint
from chaoskit.model.preludes import Resumers
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import before, parse_schedule
from tests.checkers.builder import charge, mail, undisturbed

RUN = undisturbed(*(charge(f"{n}") for n in range(4)), mail("ada")).history
CALL = CallPoint("write", "run.json", 1)
OLDER = before("damage:stale:**/*")
GROUND = Ground(RUN, [CALL], changes={"price": ""}, checkpoints=("*.db", "*"))


@given(st.sets(st.sampled_from(sorted(FAULT_KINDS))), st.integers())
def test_a_few_of_each_fault_that_was_asked_for(kinds: set[str], seed: int) -> None:
    """At most so many of each, all of them different, each with a text; the same for one seed."""
    wave = schedules(GROUND, sorted(kinds), seed)
    assert wave == schedules(GROUND, sorted(kinds), seed)
    assert len(set(wave)) == len(wave)
    assert all(parse_schedule(str(schedule)) == schedule for schedule in wave)
    last = [str(schedule.attempts[-1][-1]).partition("@")[0] for schedule in wave]
    assert all(last.count(action) <= EACH for action in set(last) if "services" not in kinds)
    assert bool(wave) == bool(kinds)


@given(st.integers())
def test_an_older_copy_comes_after_a_kill_that_a_correct_resume_meets(seed: int) -> None:
    """The second kill is at the first request of the resume, where an undisturbed run has one more:
    a place that the resume does not pass would prove nothing.
    """
    stale = [s for s in schedules(GROUND, ("damage",), seed) if "stale" in str(s)]
    for schedule in (s for s in stale if OLDER not in s.attempts[-1]):
        (one,), (two,), _ = schedule.attempts
        assert isinstance(one.point, WindowPoint)
        assert two.point == WindowPoint("payments", "charge", 1, "received")
        assert one.point.operation == "charge"
        assert one.point.ordinal < 4


@given(st.integers())
def test_an_older_copy_of_everything_comes_after_a_success(seed: int) -> None:
    """It is drawn for every task, and lands wherever the resume is right: at no point of it."""
    for checkpoints in (("*",), ("*.db",)):
        ground = Ground(RUN, [CALL], checkpoints=checkpoints)
        whole = [s for s in schedules(ground, ("damage",), seed) if "stale:**/*" in str(s)]
        assert 0 < len(whole) <= EACH
        assert all(s.attempts[0] and s.attempts[1:] == ((), (OLDER,)) for s in whole)
    assert schedules(Ground(RUN, [CALL], checkpoints=()), ("damage",), seed) == []


@pytest.mark.parametrize("seed", range(3))
def test_a_soak_puts_no_several_runners_where_a_call_is_met(seed: int) -> None:
    """They are not traced, so a trial with both would be refused."""
    others, done = at_points(GROUND, tuple(FAULT_KINDS)), preludes(GROUND, ("resumers",))
    for schedule in islice(soak([CALL], 0.1, seed, faults=others, preludes=done), 300):
        for faults in schedule.attempts:
            several = any(isinstance(fault.action, Beside | Resumers) for fault in faults)
            assert not (several and any(isinstance(f.point, CallPoint) for f in faults))


@pytest.mark.parametrize(
    ("after", "first"),
    [
        ("payments.charge", "payments.charge#1.applied"),
        ("email.*", "email.send#1.applied"),
        ("", "payments.charge#1.received"),
    ],
)
def test_a_change_is_drawn_where_its_step_was_done(after: str, first: str) -> None:
    """A kill before the step would find no change."""
    ground = Ground(RUN, [], changes={"price": after})
    places = [str(point) for point in ground.places]
    drawn = {
        str(s.attempts[0][0].point)
        for seed in range(20)
        for s in schedules(ground, ("change",), seed)
    }
    assert drawn == set(places[places.index(first) :])


def test_a_change_after_a_step_that_nobody_does_is_refused() -> None:
    """The message names the nearest step or effect."""
    changes = {"price": Change(env={"A": "b"}, after="payments.charges")}
    declared = Scenario(task=print, services=("payments",), changes=changes)
    with pytest.raises(UsageError, match=r"after= of the change 'price'.*payments\.charge"):
        check_changes(declared, RUN)
