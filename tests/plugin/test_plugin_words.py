"""Words of the marker and of the options: what they mean, and what is said to wrong ones."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit import pytest_plugin
from chaoskit.model.errors import UsageError
from chaoskit.pytest_plugin.words import WORDS, Words, budget_of, check

GOOD: Words = {
    "points": 3,
    "depth": 2,
    "seed": -7,
    "budget": "90s",
    "faults": ["stop", "clock"],
    "power_loss": True,
    "known": {"stuck": "ticket 7"},
}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (90, (90.0, None)),
        (0.5, (0.5, None)),
        ("90", (90.0, None)),
        ("90s", (90.0, None)),
        ("1.5m", (90.0, None)),
        ("1h", (3600.0, None)),
        ("200 trials", (None, 200)),
        ("1 trial", (None, 1)),
        ("", (None, None)),
    ],
)
def test_a_budget_is_seconds_or_trials(
    given: object, meant: tuple[float | None, int | None]
) -> None:
    """A number is seconds, a unit says otherwise, nothing is no bound."""
    assert budget_of(given) == meant


@given(st.one_of(st.text(max_size=6), st.floats(max_value=0), st.booleans(), st.none()))
def test_a_budget_of_nothing_or_of_no_unit_is_refused(given: object) -> None:
    """Whatever is no number above 0 with a known unit; the message shows one of each kind."""
    if given == "" or re.fullmatch(r"\s*[0-9.]+ *(s|m|h|trials?)?\s*", str(given)):
        return
    with pytest.raises(UsageError, match=r"'90s', '10m' or '1h', or trials, as in '200 trials'"):
        budget_of(given)


@pytest.mark.parametrize("given", ["0", "0s", "0 trials", "1.5 trials", 0])
def test_a_budget_that_would_try_nothing_is_refused(given: object) -> None:
    """No campaign passes because it was given no time."""
    with pytest.raises(UsageError, match="budget is"):
        budget_of(given)


def test_each_word_has_a_check_and_stands_in_the_markers_own_line() -> None:
    """What the marker is registered with, what it accepts and what is documented are one list."""
    assert set(GOOD) == set(WORDS)
    check(GOOD)
    named = re.search(r"\*, (.+?)\)", pytest_plugin.MARKER)
    assert named is not None
    assert tuple(named[1].split(", ")) == WORDS
    assert all(f"{word}: " in (Words.__doc__ or "") for word in WORDS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"point": 3}, "unknown word 'point'; nearest: points"),
        ({"points": 0}, "points is at least 1; not 0"),
        ({"points": "3"}, "points is a number; not '3'"),
        ({"depth": True}, "depth is a number; not True"),
        ({"depth": 4}, "the depth is 1, 2 or 3 kills in one trial, not 4"),
        ({"faults": "stopp"}, "unknown kind of fault 'stopp'; nearest: stop"),
        ({"faults": 3}, "as in 'stop,clock' or 'all'; not 3"),
        ({"power_loss": "yes"}, "power_loss is True or False; not 'yes'"),
        ({"budget": "soon"}, "budget is seconds"),
        ({"known": {"stuk": "t"}}, "nearest: stuck"),
    ],
)
def test_a_wrong_word_names_the_right_one(words: dict[str, object], said: str) -> None:
    """Each mistake is told with the nearest words, or with what would be a value."""
    with pytest.raises(UsageError, match=re.escape(said)):
        check(words)


MARKED = """
import pytest

pytestmark = pytest.mark.chaos({marker})

class TestMany:
    @pytest.mark.parametrize("n", [1, 2])
    def test_it(self, chaos, n):
        chaos()
"""

OTHERS = "import pytest\n\n@pytest.mark.chaos(monkey=1)\n"
"""A marker of this name that some other package knows, on a test that does not use the fixture."""


def test_a_wrong_marker_is_an_error_when_tests_are_collected(pytester: pytest.Pytester) -> None:
    """Before anything runs, also on a module and a class, once for all workers of xdist."""
    wrong = {
        "word": '"a.py", point=3',
        "value": '"a.py", budget="0 trials"',
        "two": '"a.py", "b.py"',
        "gap": '"a.py", known={"duplicate_efect@x": "t"}',
    }
    pytester.makepyfile(
        **{f"test_{name}": MARKED.format(marker=marker) for name, marker in wrong.items()},
        test_right=f"{OTHERS}def test_it():\n    pass\n",
    )
    result = pytester.runpytest_subprocess("-n", "2", "--strict-markers")
    text = result.stdout.str()
    result.assert_outcomes(errors=4, passed=1)
    assert "unknown word 'point'; nearest: points" in text
    assert "nearest: duplicate_effect" in text
    assert "give one scenario, as in @pytest.mark.chaos(" in text
    assert "test_value.py::TestMany::test_it" in text
    result = pytester.runpytest_subprocess("test_right.py", "test_word.py")
    assert result.ret == pytest.ExitCode.INTERRUPTED
