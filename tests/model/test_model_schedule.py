"""Faults and schedules as text and as value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.errors import UsageError
from chaoskit.model.points import CrossingPoint, TimePoint, WindowPoint
from chaoskit.model.schedule import (
    Fault,
    Schedule,
    kill,
    parse_fault,
    parse_schedule,
)
from tests.model.values import ANY_TEXT, FAULTS, SCHEDULES

APPLIED = kill(WindowPoint("payments", "charge", 3, "applied"))
RECEIVED = kill(WindowPoint("email", "send", 1, "received"))
CROSSED = kill(CrossingPoint("charge.done", 2))
LATER = kill(TimePoint(250))


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("none", Schedule()),
        ("-", Schedule(((),))),
        ("kill@payments.charge#3.applied", Schedule(((APPLIED,),))),
        (
            "kill@payments.charge#3.applied / kill@email.send#1.received",
            Schedule(((APPLIED,), (RECEIVED,))),
        ),
        ("kill@charge.done#2 + kill@250ms", Schedule(((CROSSED, LATER),))),
        ("- / - / kill@charge.done#2", Schedule(((), (), (CROSSED,)))),
        (
            "kill@charge.done#2 / - / kill@250ms + kill@email.send#1.received",
            Schedule(((CROSSED,), (), (LATER, RECEIVED))),
        ),
    ],
)
def test_each_form_names_its_schedule(text: str, schedule: Schedule) -> None:
    """Attempts by slashes, faults by plus signs, a dash for no fault, none for a survey."""
    assert parse_schedule(text) == schedule
    assert str(schedule) == text


@given(FAULTS)
def test_every_fault_comes_back_from_its_text(fault: Fault) -> None:
    """Parsing a fault is the inverse of printing it."""
    assert parse_fault(str(fault)) == fault


@given(SCHEDULES)
def test_every_schedule_comes_back_from_its_text(schedule: Schedule) -> None:
    """Parsing is the inverse of printing, with any number of attempts and faults in each."""
    assert parse_schedule(str(schedule)) == schedule


@given(SCHEDULES, st.sampled_from(["", " ", "\n", "  \t"]))
def test_blanks_around_a_schedule_mean_nothing(schedule: Schedule, blank: str) -> None:
    """A pasted schedule may have blanks at its ends."""
    assert parse_schedule(f"{blank}{schedule}{blank}") == schedule


@given(ANY_TEXT | st.text("kil@a#1-/+ none.", max_size=24))
def test_any_text_is_a_schedule_that_prints_alike_or_is_refused(text: str) -> None:
    """What is accepted prints as text that means the same; everything else is a usage error."""
    try:
        schedule = parse_schedule(text)
    except UsageError:
        return
    assert parse_schedule(str(schedule)) == schedule


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has an empty attempt; write - for no fault"),
        ("kill@a#1 / ", "has an empty attempt"),
        ("kill@a#1 /  / kill@b#1", "has an empty attempt"),
        ("a#1", "not a fault: 'a#1'; write kill@POINT"),
        ("kil@a#1", "unknown fault 'kil'; nearest: kill"),
        ("stop@a#1", "unknown fault 'stop'; nearest: stop:500ms"),
        ("stop:5s@a#1", "unknown fault 'stop:5s'; nearest: stop:500ms"),
        ("interrupt:@a#1", "unknown fault 'interrupt:'; nearest: interrupt:500ms"),
        ("clock:+7d@a#1", "not a prelude: 'clock:+7d@a#1'"),
        ("resumers:1", "2 to 99 resumers"),
        ("kill@", "not a point: ''"),
        ("kill@a#1 + ", "not a point: 'a#1 +'"),
        ("kill@a#1 + b#1", "not a fault: 'b#1'"),
        ("none / kill@a#1", "not a fault: 'none'"),
    ],
)
def test_what_is_no_schedule_is_refused_in_words(text: str, words: str) -> None:
    """The refusal names the part that does not parse, and the nearest name where one is unknown."""
    with pytest.raises(UsageError) as refused:
        parse_schedule(text)
    assert words in str(refused.value)


@given(SCHEDULES, st.integers(1, 8))
def test_attempts_after_the_last_one_listed_have_no_faults(
    schedule: Schedule, attempt: int
) -> None:
    """Attempts count from 1; the schedule is silent about those that it does not list."""
    listed = schedule.attempts[attempt - 1 : attempt]
    assert schedule.faults_of(attempt) == (listed[0] if listed else ())


def test_kills_are_the_faults_that_kill() -> None:
    """A clock that moves, damage, a stop and a pause are faults, and no kills."""
    for text, faults, kills in (
        ("none", 0, 0),
        ("kill@a#1 / clock:+7d + kill-leader@payments.charge#1.applied", 3, 2),
        ("late:1@payments.charge#1.received / damage:torn:*.json", 2, 1),
        ("stop:500ms@a#1 / pause@a#2 / power:drop@write(a)#1+after", 3, 1),
    ):
        schedule = parse_schedule(text)
        assert (schedule.faults, schedule.kills) == (faults, kills)


@given(SCHEDULES, st.lists(FAULTS, max_size=3))
def test_then_adds_one_attempt_and_changes_none(schedule: Schedule, faults: list[Fault]) -> None:
    """A further attempt suffers the given faults; kills and times are those of all attempts."""
    longer = schedule.then(*faults)
    assert longer.attempts[:-1] == schedule.attempts
    assert longer.attempts[-1] == tuple(faults)
    assert longer.faults == schedule.faults + len(faults)
    assert longer.timed == (schedule.timed or any(isinstance(f.point, TimePoint) for f in faults))
