"""What repeated trials prove: k of n, with the exact interval that belongs to it.

A finding that shows in 3 of 20 trials has no known rate, only an interval that holds the rate with
a chance of at least 95 %; so does one that never showed. Both are Clopper and Pearson's ("The use
of confidence or fiducial limits illustrated in the case of the binomial", Biometrika 26, 1934):
the rates at which what was seen, or anything further out, would still have had the chance that is
left. They are exact: never too narrow, however few the trials are.

The chance of k or more of n at rate p is the regularized incomplete beta function I_p(k, n-k+1)
(NIST Digital Library of Mathematical Functions, 8.17.5), taken from its continued fraction
(8.17.22) by Lentz's method. The rate that belongs to a chance is found by bisection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

CONFIDENCE = 0.95
"""The chance that an interval or a bound holds the true rate, where nothing else is asked for."""

_SMALLEST = 1e-300
"""Stands for a 0 that the fraction would be divided by, as Lentz's method asks."""

_TERMS = 100_000
"""More than the fraction ever needs: about the root of n."""


def interval(k: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The rates that ``k`` of ``n`` leaves possible; 0 and 1 after no trial at all.

    Raises:
        ValueError: there is no such ``k`` of ``n``, or the confidence is not between 0 and 1.
    """
    _check(k, n, confidence)
    beyond = (1 - confidence) / 2
    return _lower(k, n, beyond), 1 - _lower(n - k, n, beyond)


def upper_bound(k: int, n: int, confidence: float = CONFIDENCE) -> float:
    """The highest rate that ``k`` of ``n`` leaves possible, asked for alone.

    After no failure it is ``1 - 0.05 ** (1 / n)``, a little less than ``3 / n``: the rule of three.

    Raises:
        ValueError: there is no such ``k`` of ``n``, or the confidence is not between 0 and 1.
    """
    _check(k, n, confidence)
    return 1 - _lower(n - k, n, 1 - confidence)


def lower_bound(k: int, n: int, confidence: float = CONFIDENCE) -> float:
    """The lowest rate that ``k`` of ``n`` leaves possible, asked for alone.

    Raises:
        ValueError: there is no such ``k`` of ``n``, or the confidence is not between 0 and 1.
    """
    _check(k, n, confidence)
    return _lower(k, n, 1 - confidence)


def trials_needed(rate: float, confidence: float = CONFIDENCE) -> int:
    """How many trials without a failure it takes to prove that at most ``rate`` fail.

    Raises:
        ValueError: the rate or the confidence is not between 0 and 1.
    """
    if not 0 < rate < 1:
        raise ValueError(f"not a rate between 0 and 1: {rate}")
    _check(0, 0, confidence)
    return math.ceil(math.log(1 - confidence) / math.log1p(-rate))


@dataclass(frozen=True, slots=True)
class Repeats:
    """One trial run ``n`` times, of which ``k`` showed the finding."""

    k: int
    n: int

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError("nothing was repeated")
        _check(self.k, self.n, CONFIDENCE)

    @property
    def steady(self) -> bool:
        """Whether all of them agree."""
        return self.k in {0, self.n}

    @property
    def interval(self) -> tuple[float, float]:
        """The rates that they leave possible: from one side only where all of them agree."""
        if self.k == 0:
            return 0.0, upper_bound(0, self.n)
        if self.k == self.n:
            return lower_bound(self.n, self.n), 1.0
        return interval(self.k, self.n)

    def __str__(self) -> str:
        """Bounds are rounded outwards: a rounded interval still holds what the exact one does."""
        low, high = self.interval
        least, most = f"{math.floor(low * 100)} %", f"{math.ceil(high * 100)} %"
        if self.k == 0:
            return f"STEADY 0/{self.n} (at most {most})"
        if self.k == self.n:
            return f"STEADY {self.n}/{self.n} (at least {least})"
        return f"FLAKY {self.k}/{self.n} ({least}-{most})"


def _check(k: int, n: int, confidence: float) -> None:
    if not 0 <= k <= n:
        raise ValueError(f"not a number of trials and how many of them: {k} of {n}")
    if not 0 < confidence < 1:
        raise ValueError(f"not a confidence between 0 and 1: {confidence}")


def _lower(k: int, n: int, beyond: float) -> float:
    """The rate at which ``k`` or more of ``n`` have the chance ``beyond``; 0 for no k at all."""
    if k == 0:
        return 0.0
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        if _at_least(k, n, middle) < beyond:
            low = middle
        else:
            high = middle
    return low


def _at_least(k: int, n: int, rate: float) -> float:
    """The chance of ``k`` or more of ``n``, for a ``k`` of at least 1."""
    a, b = k, n - k + 1
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(logarithm + a * math.log(rate) + b * math.log1p(-rate))
    # the fraction converges fast on this side of the mean; the other side is 1 - I_1-p(b, a)
    if rate < (a + 1) / (a + b + 2):
        return front / (a * _fraction(a, b, rate))
    return 1 - front / (b * _fraction(b, a, 1 - rate))


def _fraction(a: int, b: int, x: float) -> float:
    """``1 + d1/(1 + d2/(1 + ...))`` of DLMF 8.17.22, for ``x`` below the mean: it converges."""
    value = upper = 1.0
    lower = 0.0
    for term in range(1, _TERMS):
        factor = _factor(a, b, x, term)
        lower = 1 / (1 + factor * lower or _SMALLEST)
        upper = 1 + factor / upper or _SMALLEST
        value *= upper * lower
        if abs(upper * lower - 1) < 1e-15:
            break
    return value


def _factor(a: int, b: int, x: float, term: int) -> float:
    m = term // 2
    if term % 2:
        return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
    return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
