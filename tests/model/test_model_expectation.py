"""The expectation: what an undisturbed run teaches, as one value."""

from __future__ import annotations

from collections import Counter

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.contract import parse_contract
from chaoskit.model.effects import Effect, identity_of
from chaoskit.model.expectation import Expectation
from tests.model.values import CONTRACTS, EFFECTS


def expectation(effects: list[Effect], rules: str = "") -> Expectation:
    """What is expected where nothing is volatile."""
    order = tuple(identity_of(effect, {}) for effect in effects)
    return Expectation(effects=tuple(effects), order=order, rules=rules)


@given(st.lists(EFFECTS, max_size=6))
def test_each_effect_is_expected_as_often_as_it_happened(effects: list[Effect]) -> None:
    """Identical effects are counted, not merged."""
    expected = expectation(effects)
    assert expected.counts == Counter(expected.identify(effect) for effect in effects)
    assert expected.evidence == bool(effects)


@given(st.lists(EFFECTS, max_size=6), EFFECTS)
def test_a_sample_has_the_identity_that_it_was_asked_for(
    effects: list[Effect], other: Effect
) -> None:
    """The first of the expected effects with this identity; none where it is not expected."""
    expected = expectation(effects)
    for effect in effects:
        sample = expected.sample(expected.identify(effect))
        assert sample is not None
        assert expected.identify(sample) == expected.identify(effect)
    if expected.identify(other) not in expected.order:
        assert expected.sample(expected.identify(other)) is None


def test_the_scenario_chooses_what_makes_an_effect_the_same() -> None:
    """Its own identity comes before what the surveys found volatile."""
    effect = Effect(service="a", kind="b", fields=(("at", "1"), ("who", "ada")))
    plain = Expectation(volatile={"a.b": ("at",)})
    chosen = Expectation(volatile={"a.b": ("at",)}, identity={"a.b": ("at",)})
    assert plain.identify(effect).fields == (("who", "ada"),)
    assert chosen.identify(effect).fields == (("at", "1"),)


@given(st.lists(EFFECTS, max_size=4), CONTRACTS.map(str))
def test_every_expectation_comes_back_from_its_stored_form(
    effects: list[Effect], rules: str
) -> None:
    """Workers read it from a file; they judge by the same counts and the same contract."""
    expected = expectation(effects, rules)
    read = msgspec.json.decode(msgspec.json.encode(expected), type=Expectation)
    assert read.counts == expected.counts
    assert read.effects == expected.effects
    assert read.contract == parse_contract(rules)


def test_a_declared_output_is_evidence_too() -> None:
    """A task without services is judged by the files that it leaves."""
    assert not Expectation().evidence
    assert Expectation(digests={"report.txt": "aa"}).evidence
