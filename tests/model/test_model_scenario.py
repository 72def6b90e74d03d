"""Scenarios: what cannot be run is refused where it is written."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.errors import ScenarioError, UsageError
from chaoskit.model.scenario import Scenario


def task() -> None:
    """Do nothing."""


MISTAKES: dict[str, dict[str, Any]] = {
    "give either task=FUNCTION or command=(PROGRAM, …)": {"task": None, "command": ()},
    "resume= goes with command=": {"resume": ("a",)},
    "services= takes a sequence of texts, not one text": {"services": "payments"},
    "outputs= takes a sequence of texts, not one text": {"outputs": "*.txt"},
    "redo= takes a sequence of texts, not one text": {"redo": "step/*"},
    "behaviours= takes a sequence of texts, not one text": {"behaviours": "lose-reply@a.b#1"},
    "finds= takes a sequence of texts, not one text": {"finds": "stuck"},
    "cases= takes a sequence of texts, not one text": {"cases": "DUP-1"},
    "schedules= takes a sequence of texts, not one text": {"schedules": "kill@a.b#1.applied"},
    "attempts_max= is at least 1": {"attempts_max": 0},
    "success= takes exit codes from 0 to 255, as in (0, 101), not (0, 256)": {"success": (0, 256)},
    "prepare= takes a sequence of texts, not one text": {"prepare": "python seed.py"},
    "ignore= takes a sequence of texts, not one text": {"ignore": "database.*"},
    "timeout_s= is more than 0": {"timeout_s": 0.0},
    'tables= goes with services=("database", …)': {"tables": "CREATE TABLE a (b)"},
}


@given(st.sets(st.sampled_from(sorted(MISTAKES)), min_size=1))
def test_all_contradictions_are_told_at_once(problems: set[str]) -> None:
    """One refusal holds every problem, and no other."""
    given_: dict[str, Any] = {"task": task}
    for problem in problems:
        given_ |= MISTAKES[problem]
    with pytest.raises(ScenarioError) as refused:
        Scenario(**given_)
    prefix, _, told = str(refused.value).partition(": ")
    assert prefix == "this scenario cannot be run"
    assert sorted(told.split("; ")) == sorted(problems)


@pytest.mark.parametrize("pattern", ["", "~/", "state:", "/", "/tmp/**x"])
def test_a_pattern_that_can_match_no_file_is_refused(pattern: str) -> None:
    """By its name, with nothing of Python's own words."""
    with pytest.raises(
        ScenarioError, match="outputs= takes glob patterns of files, not"
    ) as refused:
        Scenario(task=task, outputs=("a.txt", "~/a", "/tmp/*/a", "state:a", pattern))
    assert str(refused.value).endswith(repr(pattern))


@pytest.mark.parametrize(("first", "second"), [*combinations(sorted(MISTAKES), 2)])
def test_no_problem_hides_another(first: str, second: str) -> None:
    """Any two mistakes together are told as two."""
    with pytest.raises(ScenarioError) as refused:
        Scenario(**({"task": task} | MISTAKES[first] | MISTAKES[second]))
    assert first in str(refused.value)
    assert second in str(refused.value)


def test_a_task_and_a_command_together_are_too_much() -> None:
    """Exactly one of the two is given."""
    with pytest.raises(ScenarioError, match="give either task=FUNCTION or command="):
        Scenario(task=task, command=("node", "task.js"))


@pytest.mark.parametrize("name", ["command", "resume"])
def test_a_command_is_words_and_not_one_text(name: str) -> None:
    """A command line in one text is told by the name of its argument."""
    words: dict[str, Any] = {"command": ("node",), name: "node task.js"}
    with pytest.raises(ScenarioError, match=f"{name}= takes a sequence of texts"):
        Scenario(**words)


@pytest.mark.parametrize("timeout_s", [0.0, -1.0])
def test_a_time_limit_is_positive(timeout_s: float) -> None:
    """No time at all would kill every attempt."""
    with pytest.raises(ScenarioError, match="timeout_s= is more than 0"):
        Scenario(task=task, timeout_s=timeout_s)


@pytest.mark.parametrize(
    "given_",
    [
        {"task": task},
        {"command": ["node", "task.js"]},
        {"command": ("node",), "resume": ("node", "--resume")},
        {"task": task, "tables": "CREATE TABLE a (b)", "services": ("database",)},
        {"task": task, "attempts_max": 1, "timeout_s": 0.1},
        {"task": task, "services": ["payments"], "redo": (), "outputs": ["*.txt"]},
    ],
)
def test_what_can_be_run_is_accepted(given_: dict[str, Any]) -> None:
    """A task or a command with what goes with it."""
    scenario = Scenario(**given_)
    assert all(getattr(scenario, name) == value for name, value in given_.items())


def test_what_is_not_said_has_its_default() -> None:
    """No service, no output, no time limit, and four attempts after the last fault."""
    scenario = Scenario(task=task)
    assert (scenario.services, scenario.outputs, scenario.redo) == ((), (), ())
    assert (scenario.timeout_s, scenario.attempts_max) == (None, 4)


def test_a_scenario_is_a_value() -> None:
    """It cannot be changed after it was made, and its refusal is a usage error."""
    scenario = Scenario(task=task)
    with pytest.raises(AttributeError):
        scenario.attempts_max = 7  # type: ignore[misc]
    assert issubclass(ScenarioError, UsageError)


def test_a_schedule_that_cannot_be_read_is_refused_where_it_is_written() -> None:
    """The refusal names the mistake and the nearest word; what can be read is kept as it is."""
    with pytest.raises(ScenarioError, match=r"schedules=: unknown fault 'kil'; nearest: kill"):
        Scenario(task=task, schedules=("none", "kil@payments.charge#1.applied"))
    good = ("kill@payments.charge#1.applied / resumers:2", "late:1@email.send#2.received")
    assert Scenario(task=task, schedules=good).schedules == good
