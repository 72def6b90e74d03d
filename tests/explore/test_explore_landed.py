"""What of a schedule took place, and where timed faults landed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.explore.landed import part_that_landed, places_of_times
from chaoskit.model.events import CallSeen
from chaoskit.model.history import History
from chaoskit.model.schedule import Schedule, parse_fault, parse_schedule
from tests.checkers.builder import Story, charge, row

ADA, BOB = charge("ada"), charge("bob")


STORY = (
    Story()
    .starts().applies(ADA).killed("charge.sent#1")
    .starts().does(ADA).killed("30ms")
    .starts().does(BOB).ends()
)  # fmt: skip
"""Two kills, and the attempt that completes the work."""


@pytest.mark.parametrize(
    ("planned", "landed"),
    [
        ("kill@charge.sent#1 / kill@30ms", "kill@charge.sent#1 / kill@30ms"),
        ("kill@charge.sent#1 / kill@x#1", "kill@charge.sent#1"),
        ("kill@charge.sent#1 + kill@9ms / - / kill@x#1", "kill@charge.sent#1"),
        ("kill@9ms / kill@30ms", "- / kill@30ms"),
        ("kill@30ms / kill@charge.sent#1", "none"),
        ("none", "none"),
    ],
)
def test_only_what_took_place_in_its_attempt_is_left(planned: str, landed: str) -> None:
    """A fault counts where it landed in the attempt it was planned for; empty ends are cut."""
    assert str(part_that_landed(STORY.history, parse_schedule(planned))) == landed


@given(st.lists(st.sampled_from(["x#1", "9ms"]), max_size=3))
def test_what_landed_whole_stays_as_it_is(points: list[str]) -> None:
    """The part that landed of a schedule whose faults all landed is that schedule."""
    told = Story()
    for point in points:
        told.starts().killed(point)
    history = told.starts().ends().history
    assert part_that_landed(history, told.schedule) == told.schedule
    assert part_that_landed(history, Schedule()) == Schedule()


def test_a_timed_fault_landed_after_the_last_point_of_its_attempt() -> None:
    """A request's windows and a crossing are points; what no request asked for is none."""
    told = (
        Story()
        .starts().asks(ADA).killed("1ms")
        .starts().applies(ADA).killed("2ms")
        .starts().does(ADA).books(row("ada")).killed("3ms")
        .starts().does(ADA).passes("charged").killed("4ms")
        .starts().killed("5ms")
        .starts().does(ADA).killed("payments.charge#1.answered")
        .starts().ends()
    )  # fmt: skip
    found = {str(fault): str(point) for fault, point in places_of_times(told.history).items()}
    assert found == {
        "kill@1ms": "payments.charge#1.received",
        "kill@2ms": "payments.charge#1.applied",
        "kill@3ms": "payments.charge#1.answered",
        "kill@4ms": "charged#1",
    }


def test_a_system_call_that_was_told_of_is_a_place() -> None:
    """Where calls were traced the last of them before the kill is known."""
    told = Story().starts().does(ADA)._add(CallSeen(attempt=1, call="write(a)#3")).killed("7ms")
    history: History = told.starts().ends().history
    (point,) = places_of_times(history).values()
    assert str(point) == "write(a)#3"
    assert places_of_times(history).keys() == {parse_fault("kill@7ms")}
