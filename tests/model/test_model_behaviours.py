"""Behaviours of services as text and as value."""

from __future__ import annotations

import re
from pathlib import Path

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
        ("commit-late:2@payments.charge#3", Behaviour("commit-late", "payments", "charge", 3, 2)),
        (
            "commit-late:end@payments.charge#3",
            Behaviour("commit-late", "payments", "charge", 3, None),
        ),
        ("reject:429@payments.charge#3", Behaviour("reject", "payments", "charge", 3, 429)),
        ("down:4@payments.*#7", Behaviour("down", "payments", "*", 7, 4)),
        ("down:end@payments.*#1", Behaviour("down", "payments", "*", 1, None)),
        ("lag:2@payments.*.search#*", Behaviour("lag", "payments", "*.search", None, 2)),
        ("fence@payments.*#*", Behaviour("fence", "payments", "*")),
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
    "text",
    [
        "lose-reply@a.b#1٣",
        "late-reply:٣ms@a.b#1",
        "late-reply:007ms@a.b#1",
        "down:04@a.b#1",
        "reject:4٣2@a.b#1",
    ],
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
        ("lose-reply:250ms@email.send#1", "lose-reply takes no argument; write lose-reply@"),
        ("commit-late@email.send#1", "commit-late takes a number of requests or end"),
        ("commit-late:0@email.send#1", "commit-late takes a number of requests or end"),
        ("down:4ms@email.*#1", "down takes a number of requests or end, as in down:4@"),
        ("lag:end@email.*#1", "lag takes a number of requests, as in lag:2@"),
        ("reject:200@email.send#1", "reject takes a status from 400 to 599: reject:429@"),
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
    name = behaviour.operation.replace("*", operation)
    assert behaviour.applies(behaviour.service, name, own)
    assert behaviour.applies(behaviour.service, name, own + 1) == (behaviour.ordinal is None)
    if service != behaviour.service:
        assert not behaviour.applies(service, name, own)
    if "*" not in behaviour.operation and operation != behaviour.operation:
        assert not behaviour.applies(behaviour.service, operation, own)


@pytest.mark.parametrize(
    ("pattern", "covered", "not_covered"),
    [
        ("*", ("charge", "charge.search"), ()),
        ("*.search", ("charge.search", ".search"), ("charge", "charge.searched")),
        ("charge*", ("charge", "charge.list"), ("xcharge",)),
        ("a.b", ("a.b",), ("axb", "a.b.c")),
    ],
)
def test_a_star_in_an_operation_stands_for_any_text(
    pattern: str, covered: tuple[str, ...], not_covered: tuple[str, ...]
) -> None:
    """All else in it stands for itself."""
    behaviour = Behaviour("fence", "payments", pattern)
    assert all(map(behaviour.covers, covered))
    assert not any(map(behaviour.covers, not_covered))


def test_the_page_on_behaviours_shows_each_kind() -> None:
    """Its table has a form of every kind, and each form that it shows is one."""
    page = Path(__file__).resolve().parents[2] / "docs" / "behaviours.md"
    shown = [
        parse_behaviour(text)
        for text in re.findall(r"^\| `([^`]+@[^`]+)`", page.read_text(), re.MULTILINE)
        if not text.startswith("kill@")
    ]
    assert {behaviour.kind for behaviour in shown} == set(KINDS)
