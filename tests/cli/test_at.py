"""``--at`` takes every schedule text that a report prints."""

from __future__ import annotations

import pytest
from hypothesis import given

from chaoskit.model.pasted import read_schedule
from chaoskit.model.schedule import Schedule, kill
from tests.model.values import POINTS, SCHEDULES


@given(SCHEDULES)
def test_a_printed_schedule_is_taken_as_it_stands(schedule: Schedule) -> None:
    """With any number of attempts, with preludes, and with attempts without a fault."""
    assert read_schedule(str(schedule)) == schedule


@given(POINTS)
def test_a_point_alone_is_a_kill_there(point: object) -> None:
    """Windows, crossings, calls and times."""
    text = str(point)
    assert read_schedule(text) == Schedule(((kill(point),),))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["clock:+7d", "- / damage:stale:**/*", "none", "resumers:2", "- / change:price"]
)
def test_what_is_done_before_an_attempt_needs_no_point(text: str) -> None:
    """A prelude stands alone, in the first attempt too."""
    assert str(read_schedule(text)) == text
