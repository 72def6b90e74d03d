"""Strategies for hypothesis: what they draw can be done, and it shrinks to what says most."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from chaoskit.campaign.bench import Bench
from chaoskit.model.actions import Beside, Kill
from chaoskit.model.changes import Change
from chaoskit.model.errors import UsageError
from chaoskit.model.points import START, CallPoint, parse_point
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Schedule, parse_fault, parse_schedule
from chaoskit.model.token import Target
from chaoskit.strategies import KINDS, faults, points, preludes, schedules
from chaoskit.trial.preludes import Circumstances

ROOT = Path(__file__).resolve().parents[2]

PLACES = [
    "payments.charge#1.received",
    "payments.charge#1.applied",
    "write(run.json)#1",
    "here#1",
    "payments.charge#2.received",
]
ALL = schedules(
    PLACES, faults=KINDS, kills_max=3, changes=("price",), checkpoints=("*.db",), services=("p",)
)


def smallest(holds: Callable[[Schedule], bool]) -> str:
    """What hypothesis shrinks to, where a schedule fails as soon as this holds."""
    return str(find(ALL, holds))


# What is drawn.


@given(ALL)
def test_what_is_drawn_has_a_text_and_can_be_done(schedule: Schedule) -> None:
    """It comes back from its text, and a trial refuses none of it."""
    assert parse_schedule(str(schedule)) == schedule
    assert schedule.attempts
    known = Scenario(task=print, services=("p",), changes={"price": Change(env={"A": "b"})})
    circumstances = Circumstances(known, [_Service()], None)  # type: ignore[list-item, arg-type]
    circumstances.check(schedule)
    assert len([f for faults in schedule.attempts for f in faults if not f.is_prelude]) <= 3


class _Service:
    """One that can misbehave."""

    name = "p"

    def behave(self, behaviours: object) -> None:
        """Does nothing."""


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn(kind: str) -> None:
    """None of those that are asked for is left out, or drawn where nobody asked for it."""

    def has(schedule: Schedule) -> bool:
        kinds = {"down" if kind == "services" else kind}
        return any(f.kind.partition(":")[0] in kinds for fs in schedule.attempts for f in fs)

    assert has(find(ALL, has))
    plain = schedules(PLACES)
    assert {f.action for f in find(plain, lambda _: True).attempts[0]} == {Kill()}


@given(faults(PLACES, KINDS))
def test_a_fault_suits_its_point(fault: object) -> None:
    """It parses back: no late landing but of a request, no second runner at a call."""
    assert parse_fault(str(fault)) == fault


# How it shrinks.


@pytest.mark.parametrize(
    ("holds", "expected"),
    [
        (lambda _: True, "kill@payments.charge#1.received"),
        (
            lambda s: len(s.attempts) > 1 and bool(s.attempts[1]),
            "kill@payments.charge#1.received / resumers:2",
        ),
        (
            lambda s: sum(not f.is_prelude for fs in s.attempts for f in fs) > 1,
            "kill@payments.charge#1.received / kill@payments.charge#1.received",
        ),
        (
            lambda s: any(isinstance(f.action, Beside) for fs in s.attempts for f in fs),
            "pause@payments.charge#1.received",
        ),
        (
            lambda s: any(isinstance(f.point, CallPoint) for fs in s.attempts for f in fs),
            "kill@write(run.json)#1",
        ),
        (
            lambda s: "clock" in str(s),
            "kill@payments.charge#1.received / clock:+7d",
        ),
        (lambda s: "here#1" in str(s), "kill@here#1"),
    ],
)
def test_a_failing_schedule_shrinks_to_the_plainest_one(
    holds: Callable[[Schedule], bool], expected: str
) -> None:
    """Fewer attempts with a fault at a point, fewer faults, plain kills, earlier points: whatever
    is not needed goes.
    """
    assert smallest(holds) == expected


def test_points_and_faults_shrink_to_the_first() -> None:
    """And a fault to a plain kill."""
    assert find(points(PLACES), lambda _: True) == parse_point(PLACES[0])
    assert str(find(faults(PLACES, KINDS), lambda _: True)) == f"kill@{PLACES[0]}"


# What is refused.


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: points([]), "there is no point"),
        (lambda: points([START]), "nothing lands at the start"),
        (lambda: points(["nothing"]), "not a point: 'nothing'"),
        (lambda: faults(PLACES, ("stpo",)), "unknown kind of fault 'stpo'; nearest: stop"),
        (lambda: faults(PLACES, "stop"), "write ('stop',)"),
        (lambda: preludes(("damage",), checkpoints=("/etc/*",)), "only files in the work folder"),
        (lambda: preludes(("change",), changes=("a b",)), "not a prelude"),
        (lambda: schedules(PLACES, kills_max=0), "kills_max is at least 1, not 0"),
        (lambda: schedules(PLACES, faults=("clok",)), "nearest: clock"),
    ],
)
def test_what_cannot_be_drawn_is_refused_at_once(
    make: Callable[[], st.SearchStrategy[object]], words: str
) -> None:
    """When the strategy is made, not when it draws."""
    with pytest.raises(UsageError) as refused:
        make()
    assert words in str(refused.value)


# The documentation's example.


@settings(max_examples=6, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_an_undisturbed_run_can_be_given_as_it_is(bench: Bench, data: st.DataObject) -> None:
    """Its windows are the points; whatever is drawn from them is run, and judged."""
    schedule = data.draw(schedules(bench.survey().first, kills_max=1))
    tried = bench.trial(schedule)
    assert tried.landed
    assert tried.judgement.verdict == "VALID"


@pytest.fixture(scope="module")
def bench() -> object:
    """One bench for all examples."""
    with Bench(Target(scenario=str(ROOT / "scenarios/exact/forty_steps.py") + ":keyed"), 0) as made:
        yield made


@pytest.mark.exhaustive
def test_the_example_of_the_documentation_runs(pytester: pytest.Pytester) -> None:
    """docs/faults.md shows a whole test; it passes as it stands there."""
    text = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(import .*?@given.*?)```", text, re.DOTALL)
    pytester.makepyfile(test_example=code.replace("scenarios/", f"{ROOT}/scenarios/"))
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(passed=1)
