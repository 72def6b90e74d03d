"""Behaviours of services as text and as value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.behaviours import KINDS, Behaviour, parse_behaviour
from chaoskit.model.errors import UsageError
from tests.model.values import ANY_TEXT, BEHAVIOURS, NAMES, SERVICES


@pytest.mark.parametrize(
    ("text", "behaviour"),
    [
        ("lose-reply@payments.charge#3", Behaviour("lose-reply", "payments", "charge", 3)),
        (
            "fail-after-commit@payments.charge#*",
            Behaviour("fail-after-commit", "payments", "charge"),
        ),
        ("late-reply:250ms@email.send#*", Behaviour("late-reply", "email", "send", None, 250)),
        ("apply-twice@payments.charge#1", Behaviour("apply-twice", "payments", "charge", 1)),
        ("forget-keys@shop.v1/a.b#12", Behaviour("forget-keys", "shop", "v1/a.b", 12)),
    ],
)
def test_each_form_names_its_behaviour(text: str, behaviour: Behaviour) -> None:
    """The forms of the documentation are read as the values that they name."""
    assert parse_behaviour(text) == behaviour
    assert str(behaviour) == text


@given(BEHAVIOURS)
def test_every_behaviour_comes_back_from_its_text(behaviour: Behaviour) -> None:
    """Parsing is the inverse of printing."""
    assert parse_behaviour(str(behaviour)) == behaviour


@given(ANY_TEXT | st.builds("{}{}@a.b#{}".format, st.sampled_from(KINDS), ANY_TEXT, ANY_TEXT))
def test_any_text_is_a_behaviour_that_prints_it_or_is_refused(text: str) -> None:
    """What is accepted prints as it was written; everything else is a usage error."""
    try:
        behaviour = parse_behaviour(text)
    except UsageError:
        return
    assert str(behaviour) == text


@pytest.mark.parametrize(
    "text", ["lose-reply@a.b#1٣", "late-reply:٣ms@a.b#1", "late-reply:007ms@a.b#1"]
)
def test_each_number_has_one_way_to_be_written(text: str) -> None:
    """The digits 0 to 9 without zeros before them, as a behaviour prints them."""
    with pytest.raises(UsageError):
        parse_behaviour(text)


@pytest.mark.parametrize("form", ["lose-reply@a.b#{}", "late-reply:{}ms@a.b#1"])
def test_a_number_beyond_all_measure_is_refused_or_read(form: str) -> None:
    """However many digits it has, it never raises anything but a usage error."""
    text = form.format("1" * 5000)
    try:
        behaviour = parse_behaviour(text)
    except UsageError:
        return
    assert str(behaviour) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a behaviour: ''; write lose-reply@payments.charge#3"),
        ("lose-reply", "not a behaviour"),
        ("lose-reply@payments.charge", "not a behaviour"),
        ("lose-reply@payments.charge#0", "not a behaviour"),
        ("lose-reply@payments#1", "not a behaviour"),
        ("loose-reply@payments.charge#1", "unknown behaviour 'loose-reply'; nearest: lose-reply"),
        ("forget-key@payments.charge#*", "unknown behaviour 'forget-key'; nearest: forget-keys"),
        ("late-reply@email.send#1", "late-reply takes a delay, as in late-reply:250ms@"),
        ("lose-reply:250ms@email.send#1", "late-reply takes a delay"),
    ],
)
def test_what_is_no_behaviour_is_refused_in_words(text: str, words: str) -> None:
    """The refusal shows the form, or the nearest name of an unknown behaviour."""
    with pytest.raises(UsageError) as refused:
        parse_behaviour(text)
    assert words in str(refused.value)


@given(BEHAVIOURS, SERVICES, NAMES, st.integers(1, 5))
def test_a_behaviour_applies_to_its_own_requests_only(
    behaviour: Behaviour, service: str, operation: str, ordinal: int
) -> None:
    """Service, operation and ordinal must agree; without an ordinal each request is meant."""
    own = behaviour.ordinal or ordinal
    assert behaviour.applies(behaviour.service, behaviour.operation, own)
    assert behaviour.applies(behaviour.service, behaviour.operation, own + 1) == (
        behaviour.ordinal is None
    )
    if service != behaviour.service:
        assert not behaviour.applies(service, behaviour.operation, own)
    if operation != behaviour.operation:
        assert not behaviour.applies(behaviour.service, operation, own)
