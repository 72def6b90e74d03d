"""What repeated trials prove, measured against exact fractions and against the definition."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.explore.statistics import (
    Repeats,
    interval,
    lower_bound,
    trials_needed,
    upper_bound,
)


def at_least(k: int, n: int, rate: float) -> Fraction:
    """The exact chance of ``k`` or more of ``n`` at ``rate``: the sum itself, in fractions."""
    p = Fraction(rate)
    return sum(
        (math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1)), start=Fraction(0)
    )


def at_most(k: int, n: int, rate: float) -> Fraction:
    """The exact chance of ``k`` or fewer of ``n`` at ``rate``."""
    return 1 - at_least(k + 1, n, rate)


@st.composite
def outcomes(draw: st.DrawFn, most: int = 60) -> tuple[int, int]:
    """Some ``k`` of ``n``."""
    n = draw(st.integers(1, most))
    return draw(st.integers(0, n)), n


CONFIDENCES = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99, 0.999])

# The interval.


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (0, 10, 0.0, 0.3085),
        (1, 10, 0.0025, 0.4450),
        (5, 10, 0.1871, 0.8129),
        (10, 10, 0.6915, 1.0),
        (3, 20, 0.0321, 0.3789),
        (10, 100, 0.0490, 0.1762),
        (50, 100, 0.3983, 0.6017),
        (1, 1, 0.0250, 1.0),
    ],
)
def test_the_intervals_are_those_of_the_printed_tables(
    k: int, n: int, low: float, high: float
) -> None:
    """To the four digits that tables of exact 95 % limits give."""
    assert interval(k, n) == pytest.approx((low, high), abs=5e-5)


@given(outcomes(), CONFIDENCES)
def test_at_each_end_what_was_seen_has_just_the_chance_that_is_left(
    outcome: tuple[int, int], confidence: float
) -> None:
    """The definition, in exact fractions: k or more at the lower end and k or fewer at the upper
    one have half of what the confidence leaves.
    """
    k, n = outcome
    low, high = interval(k, n, confidence)
    beyond = (1 - confidence) / 2
    assert 0 <= low <= k / n <= high <= 1
    assert low == 0 if k == 0 else float(at_least(k, n, low)) == pytest.approx(beyond, rel=1e-9)
    assert high == 1 if k == n else float(at_most(k, n, high)) == pytest.approx(beyond, rel=1e-9)


@given(st.integers(1, 40), st.floats(0, 1), CONFIDENCES)
def test_an_interval_holds_the_true_rate_as_often_as_it_says(
    n: int, rate: float, confidence: float
) -> None:
    """Whatever the rate, the outcomes whose interval holds it have at least the confidence."""
    p = Fraction(rate)
    chance = Fraction(0)
    for k in range(n + 1):
        low, high = interval(k, n, confidence)
        if low <= rate <= high:
            chance += math.comb(n, k) * p**k * (1 - p) ** (n - k)
    assert chance >= confidence - 1e-9


@pytest.mark.parametrize("rate", [0.003, 0.05, 0.15, 0.5, 0.97])
@pytest.mark.parametrize("n", [5, 30, 200])
def test_simulated_trials_fall_outside_no_more_often_than_allowed(rate: float, n: int) -> None:
    """Of 1000 simulated campaigns no more than five in a hundred miss the rate, but for luck."""
    luck = random.Random(f"{rate} {n}")
    intervals = [interval(k, n) for k in range(n + 1)]
    missed = 0
    for _ in range(1000):
        low, high = intervals[sum(luck.random() < rate for _ in range(n))]
        missed += not low <= rate <= high
    assert missed <= 75


@given(outcomes(most=300), CONFIDENCES)
def test_what_fails_is_the_mirror_of_what_does_not(
    outcome: tuple[int, int], confidence: float
) -> None:
    """The interval of n - k of n is that of k of n seen from the other end."""
    k, n = outcome
    low, high = interval(k, n, confidence)
    assert interval(n - k, n, confidence) == pytest.approx((1 - high, 1 - low), abs=1e-12)


@given(outcomes(most=300))
def test_more_failures_mean_a_higher_interval_and_more_confidence_a_wider_one(
    outcome: tuple[int, int],
) -> None:
    """Both ends rise with k, and both move outwards with the confidence."""
    k, n = outcome
    low, high = interval(k, n)
    wide_low, wide_high = interval(k, n, 0.99)
    assert wide_low <= low
    assert high <= wide_high
    if k < n:
        next_low, next_high = interval(k + 1, n)
        assert low < next_low
        assert high < next_high or next_high == 1


@pytest.mark.parametrize("n", [10**4, 10**6, 10**7])
def test_long_soaks_are_still_counted_exactly(n: int) -> None:
    """With one failure in very many trials the ends agree with the limit, Poisson's law."""
    low, high = interval(1, n)
    assert low * n == pytest.approx(0.025318, rel=1e-3)
    assert high * n == pytest.approx(5.571643, rel=1e-3)


def test_no_trial_proves_nothing() -> None:
    """Any rate is possible then."""
    assert interval(0, 0) == (0.0, 1.0)
    assert upper_bound(0, 0) == 1.0
    assert lower_bound(0, 0) == 0.0


# Bounds from one side.


@given(st.integers(1, 10**6))
def test_after_no_failure_the_bound_is_the_rule_of_three(n: int) -> None:
    """It is 1 - 0.05 ** (1 / n), and never more than three in n."""
    assert upper_bound(0, n) == pytest.approx(-math.expm1(math.log(0.05) / n), rel=1e-7)
    assert upper_bound(0, n) <= 3 / n


@given(outcomes(), CONFIDENCES)
def test_a_bound_is_where_the_seen_has_the_whole_chance_that_is_left(
    outcome: tuple[int, int], confidence: float
) -> None:
    """In exact fractions; asked for alone, it is tighter than the same end of an interval."""
    k, n = outcome
    low, high = lower_bound(k, n, confidence), upper_bound(k, n, confidence)
    left = pytest.approx(1 - confidence, rel=1e-9)
    assert low == 0 if k == 0 else float(at_least(k, n, low)) == left
    assert high == 1 if k == n else float(at_most(k, n, high)) == left
    ends = interval(k, n, confidence)
    assert ends[0] <= low
    assert high <= ends[1]


@given(st.floats(1e-5, 0.999), CONFIDENCES)
def test_the_number_of_trials_needed_is_the_smallest_that_proves_the_rate(
    rate: float, confidence: float
) -> None:
    """With that many and no failure the bound is at most the rate; with one fewer it is above."""
    n = trials_needed(rate, confidence)
    assert upper_bound(0, n, confidence) <= rate * (1 + 1e-7)
    assert upper_bound(0, n - 1, confidence) >= rate * (1 - 1e-7)


def test_the_number_of_trials_needed_for_known_rates() -> None:
    """299 for one in a hundred, 29 for one in ten, at 95 %."""
    assert [trials_needed(rate) for rate in (0.01, 0.1, 0.5)] == [299, 29, 5]


# Repeats.


@pytest.mark.parametrize(
    ("k", "n", "text"),
    [
        (3, 20, "FLAKY 3/20 (3 %-38 %)"),
        (19, 20, "FLAKY 19/20 (75 %-100 %)"),
        (1, 1000, "FLAKY 1/1000 (0 %-1 %)"),
        (0, 20, "STEADY 0/20 (at most 14 %)"),
        (20, 20, "STEADY 20/20 (at least 86 %)"),
        (1, 1, "STEADY 1/1 (at least 5 %)"),
    ],
)
def test_repeats_say_how_many_and_what_that_proves(k: int, n: int, text: str) -> None:
    """STEADY with the bound, FLAKY with the interval."""
    assert str(Repeats(k, n)) == text


@given(outcomes(most=300))
def test_repeats_are_steady_where_all_agree(outcome: tuple[int, int]) -> None:
    """And only there; the interval holds what was seen either way."""
    k, n = outcome
    repeats = Repeats(k, n)
    low, high = repeats.interval
    assert repeats.steady == (k in {0, n}) == str(repeats).startswith(f"STEADY {k}/{n} ")
    assert low <= k / n <= high


@given(st.integers(1, 200), st.integers(1, 200))
def test_the_text_claims_no_more_than_the_interval(failed: int, passed: int) -> None:
    """Rounded percents hold the exact interval."""
    repeats = Repeats(failed, failed + passed)
    low, high = (int(word.rstrip(" %)")) for word in str(repeats).split("(")[1].split("-"))
    assert low / 100 <= repeats.interval[0]
    assert repeats.interval[1] <= high / 100


# What is no outcome.


@pytest.mark.parametrize(("k", "n"), [(-1, 5), (6, 5), (0, -1)])
def test_what_is_no_outcome_is_refused(k: int, n: int) -> None:
    """More failures than trials, or fewer than none."""
    for function in (interval, upper_bound, lower_bound, Repeats):
        with pytest.raises(ValueError, match=r"trials|repeated"):
            function(k, n)


def test_repeats_of_nothing_are_refused() -> None:
    """They would look steady."""
    with pytest.raises(ValueError, match="nothing was repeated"):
        Repeats(0, 0)


@pytest.mark.parametrize("share", [-0.1, 0.0, 1.0, 95.0, math.nan])
def test_what_is_no_share_is_refused(share: float) -> None:
    """A confidence or a rate stands strictly between 0 and 1; 95 is not 95 %."""
    with pytest.raises(ValueError, match="confidence"):
        interval(1, 2, share)
    with pytest.raises(ValueError, match="confidence"):
        trials_needed(0.5, share)
    with pytest.raises(ValueError, match="rate"):
        trials_needed(share)
