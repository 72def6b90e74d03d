"""Errors: who has to act, and which name was meant."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chaoskit.model.errors import (
    ChaoskitError,
    FormatError,
    HarnessError,
    ScenarioError,
    UsageError,
    unknown_name,
)


@pytest.mark.parametrize(
    ("kind", "exit_code"),
    [(UsageError, 2), (ScenarioError, 2), (FormatError, 2), (HarnessError, 3), (ChaoskitError, 3)],
)
def test_the_exit_code_says_who_has_to_act(kind: type[ChaoskitError], exit_code: int) -> None:
    """2 is for the user's words and files, 3 is for chaoskit itself."""
    assert issubclass(kind, ChaoskitError)
    assert kind.exit_code == exit_code


@given(st.sets(st.text(min_size=1), min_size=1), st.text())
def test_an_unknown_name_is_told_with_a_known_one(known: set[str], name: str) -> None:
    """The error quotes what was written and names at least one valid name."""
    assume(name not in known)
    error = unknown_name("scenario", name, known)
    assert str(error).startswith(f"unknown scenario {name!r}; nearest: ")
    assert any(valid in str(error) for valid in known)


@given(st.lists(st.text("abcdef", min_size=4, max_size=8), min_size=1, unique=True), st.data())
def test_the_nearest_name_comes_first(known: list[str], data: st.DataObject) -> None:
    """A name with one letter too many finds the one that was meant, whatever others there are."""
    meant = data.draw(st.sampled_from(known))
    near = str(unknown_name("point", f"{meant}z", known)).partition("nearest: ")[2].split(", ")
    assert near[0] == meant
    assert len(near) <= 3


def test_where_there_are_no_names_it_says_so() -> None:
    """Nothing to choose from is said in words."""
    assert str(unknown_name("service", "mail", [])) == "unknown service 'mail': there are none"
