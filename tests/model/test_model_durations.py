"""Durations: a text or seconds in, seconds out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.durations import duration_text, parse_duration
from chaoskit.model.errors import UsageError


@pytest.mark.parametrize(
    ("given_", "seconds"), [("90s", 90), ("5m", 300), ("24h", 86400), ("7d", 604800), (1.5, 1.5)]
)
def test_a_duration_is_a_text_or_seconds(given_: str | float, seconds: float) -> None:
    """Each unit, and a number as it is."""
    assert parse_duration(given_, "x") == seconds


@given(st.integers(min_value=1, max_value=10**9 - 1))
def test_the_text_of_seconds_says_so_many(seconds: int) -> None:
    """It comes back from its text."""
    assert parse_duration(duration_text(seconds), "x") == seconds


@pytest.mark.parametrize(
    "given_", ["", "0h", "1w", "h", "1.5h", "-1s", 0, -1.0, float("inf"), None]
)
def test_what_is_no_duration_is_refused_with_the_forms(given_: object) -> None:
    """No unit, no number, nothing, less than nothing, and for ever."""
    with pytest.raises(UsageError, match="key_lifetime= takes a time, as in 90s, 5m, 24h or 7d"):
        parse_duration(given_, "key_lifetime=")
