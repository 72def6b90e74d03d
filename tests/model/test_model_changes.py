"""Changes: what may be different at a resume, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.changes import RIGHTS, Change
from chaoskit.model.errors import ScenarioError
from chaoskit.model.findings import FINDING_KINDS
from chaoskit.model.scenario import Scenario
from tests.model.values import NAMES


def other_world(folder: Path, env: Mapping[str, str]) -> None:
    """Does nothing."""


def task() -> None:
    """Does nothing."""


WAYS: list[dict[str, object]] = [
    {"world": other_world},
    {"inputs": lambda seed: seed},
    {"env": {"A": "b"}},
    {"task": task},
    {"command": ("true",)},
]


@pytest.mark.parametrize("ways", [*WAYS, WAYS[0] | WAYS[1] | WAYS[2] | WAYS[3]], ids="+".join)
def test_one_way_or_several_make_a_change(ways: dict[str, object]) -> None:
    """Each of the five is enough; a correct task then refuses, unless it is said otherwise."""
    change = Change(**ways)  # type: ignore[arg-type]
    assert (change.right, change.matters, change.finding) == ("refuse", ("*",), "stale_world")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "a change changes something: give world=, inputs=, env=, task= or command="),
        ({"right": "go-on"}, "a change changes something"),
        ({"env": {}}, "a change changes something"),
        ({"command": "true"}, "take a sequence of texts"),
        ({"env": {"A": "b"}, "matters": "payments.*"}, "take a sequence of texts"),
        ({"env": {"A": "b"}, "right": "go on"}, "write refuse, go-on, replan, stop, either"),
        ({"env": {"A": "b"}, "finding": "stale"}, "is no kind of finding: duplicate_effect"),
    ],
)
def test_a_change_that_says_nothing_or_nonsense_is_refused(
    given: dict[str, object], words: str
) -> None:
    """The refusal says what can be written."""
    with pytest.raises(ScenarioError) as refused:
        Change(**given)  # type: ignore[arg-type]
    assert words in str(refused.value)


@given(st.sampled_from(RIGHTS), st.sampled_from(sorted(FINDING_KINDS)))
def test_every_right_and_every_kind_of_finding_can_be_declared(right: str, kind: str) -> None:
    """A change names what a correct task does, and how it is called if it does not."""
    change = Change(env={"A": "b"}, right=right, finding=kind)  # type: ignore[arg-type]
    assert (change.right, change.finding) == (right, kind)


@given(NAMES)
def test_whatever_a_schedule_can_name_a_scenario_can_declare(name: str) -> None:
    """Names of changes are those of crossings."""
    scenario = Scenario(task=task, changes={name: Change(env={"A": "b"})})
    assert list(scenario.changes) == [name]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"task": task, "changes": {"a b": Change(env={"A": "b"})}}, "changes= names 'a b'"),
        ({"task": task, "changes": {"": Change(env={"A": "b"})}}, "changes= names ''"),
        (
            {"command": ("true",), "changes": {"code": Change(task=task)}},
            "the change 'code' has task=, and this scenario has a command=",
        ),
        (
            {"task": task, "changes": {"code": Change(command=("true",))}},
            "the change 'code' has command=, and this scenario has a task=",
        ),
        ({"task": task, "checkpoints": "*.db"}, "checkpoints= takes a sequence of texts"),
        ({"task": task, "schedules": ("clock:7d",)}, "schedules=: not a prelude"),
    ],
)
def test_a_scenario_refuses_what_it_cannot_do(given: dict[str, object], words: str) -> None:
    """A name that no schedule could write, or code of another sort than the scenario's own."""
    with pytest.raises(ScenarioError) as refused:
        Scenario(**given)  # type: ignore[arg-type]
    assert words in str(refused.value)
