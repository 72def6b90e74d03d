"""The multiset comparison, and the words that the checkers share."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.checkers.comparison import compare, difference, in_words, nearest, subject, times
from chaoskit.model.effects import Effect
from tests.checkers.builder import Story, charge, expecting, mail

SOME = st.lists(st.sampled_from([charge(who) for who in "abcd"] + [mail("a")]), max_size=8)


@given(SOME, SOME)
def test_the_comparison_counts_both_sides(expected: list[Effect], happened: list[Effect]) -> None:
    """Extra, missing and strange are what a count of both lists says."""
    expectation = expecting(*expected)
    found = compare(Story().starts().does(*happened).ends().history, expectation)
    want, have = (Counter(map(expectation.identify, some)) for some in (expected, happened))
    assert {i: len(seen) for i, seen in found.seen.items()} == have
    assert {i: (n, len(s)) for i, n, s in found.extra} == {
        i: (n, have[i]) for i, n in want.items() if have[i] > n
    }
    assert {i: (n, len(s)) for i, n, s in found.missing} == {
        i: (n, have[i]) for i, n in want.items() if have[i] < n
    }
    assert {i for i, _ in found.strange} == have.keys() - want.keys()


def test_two_trials_are_not_mixed_up() -> None:
    """The comparison that is kept is that of the very history and expectation asked for."""
    expectation = expecting(charge("a"))
    one, two = (Story().starts().does(*[charge("a")] * n).ends().history for n in (1, 2))
    assert [len(compare(h, expectation).extra) for h in (one, two, one, two)] == [0, 1, 0, 1]
    assert len(compare(two, expecting(charge("a"), charge("a"))).extra) == 0


@pytest.mark.parametrize(
    ("number", "words"), [(0, "never"), (1, "once"), (2, "twice"), (3, "3 times"), (40, "40 times")]
)
def test_numbers_are_told_in_words(number: int, words: str) -> None:
    """As a person would say them."""
    assert times(number) == words


def test_the_nearest_effect_shares_the_most_fields() -> None:
    """Of the same operation; none where there is no other of it."""
    candidates = [charge("bob", 7), charge("ada", 8), mail("ada")]
    assert nearest(charge("ada", 9), candidates) == charge("ada", 8)
    assert nearest(charge("eve", 7), candidates) == charge("bob", 7)
    assert nearest(mail("eve"), candidates) == mail("ada")
    assert nearest(mail("eve"), candidates[:2]) is None


@pytest.mark.parametrize(
    ("seen", "expected", "words"),
    [
        (charge("ada", 7), charge("ada", 8), "amount is '7', not '8'"),
        (charge("ada", note="x"), charge("ada"), "note is 'x', not 'absent'"),
        (charge("ada"), charge("ada", note="x"), "note is 'absent', not 'x'"),
        (charge("a", 1), charge("b", 2), "amount is '1', not '2'; customer is 'a', not 'b'"),
        (charge("a"), charge("a"), ""),
        (
            charge("a", b="1", c="2", d="3", e="4"),
            charge("a", b="5", c="6", d="7", e="8"),
            "b is '1', not '5'; c is '2', not '6'; d is '3', not '7' and 1 more",
        ),
    ],
)
def test_a_difference_is_told_by_field(seen: Effect, expected: Effect, words: str) -> None:
    """Three fields at most, in the order of their names."""
    assert difference(seen, expected) == words


def test_an_identity_has_a_subject_and_words() -> None:
    """The subject tells identities apart, and the words are those of the expected effect."""
    expectation = expecting(charge("ada"))
    [known] = expectation.order
    strange = expectation.identify(mail("bob"))
    assert subject(known) == "amount=100|customer=ada"
    assert in_words(known, expectation) == "charge of 100 to ada"
    assert in_words(strange, expectation) == "email.send"
