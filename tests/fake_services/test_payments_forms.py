"""Forms and money: what a client encodes is what the service reads."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stripe._encode import _api_encode

from chaoskit.model.money import money
from fake_services.payments.errors import RefusedError
from fake_services.payments.forms import (
    NESTING_MAX,
    decode,
    flag_of,
    form_of,
    text_of,
    texts_of,
)

NAMES = st.text(min_size=1, max_size=8).filter(lambda name: not set("[]") & set(name))
LEAVES = st.text(max_size=12) | st.integers()
PARAMS = st.dictionaries(
    NAMES,
    st.recursive(
        LEAVES,
        lambda inner: (
            st.lists(inner, min_size=1, max_size=3)
            | st.dictionaries(NAMES, inner, min_size=1, max_size=3)
        ),
        max_leaves=6,
    ),
    max_size=5,
)


def as_form(value: Any) -> Any:
    """What a client's parameters are as a form: text in mappings, a list being one by index."""
    if isinstance(value, dict):
        return {name: as_form(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return {str(index): as_form(inner) for index, inner in enumerate(value)}
    return str(value)


def depth(value: Any) -> int:
    """How many brackets the deepest name has, plus one."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return 1 + max((depth(one) for one in inner), default=0)
    return 0


@given(PARAMS.filter(lambda params: depth(params) <= NESTING_MAX))
def test_what_the_stripe_client_encodes_is_decoded_unchanged(params: dict[str, Any]) -> None:
    """Decoding is the inverse of the official client's own encoder."""
    assert decode(urlencode(list(_api_encode(params)))) == as_form(params)


@given(st.text(alphabet=st.sampled_from("ab[]=&%+é%5B;0"), max_size=60))
def test_no_text_is_an_error(text: str) -> None:
    """Any text at all is some form."""
    assert isinstance(decode(text), dict)


def test_a_flag_is_true_false_or_its_default() -> None:
    """Booleans are read as the client writes them."""
    form = decode(urlencode(list(_api_encode({"confirm": True, "capture": False}))))
    assert flag_of(form, "confirm")
    assert not flag_of(form, "capture", default=True)
    assert flag_of(form, "elsewhere", default=True)


def test_every_spelling_of_a_list_reads_the_same() -> None:
    """Lists with and without indexes are the same list."""
    assert texts_of(decode("expand[]=a&expand[]=b"), "expand") == ("a", "b")
    assert texts_of(decode("expand%5B0%5D=a&expand%5B1%5D=b"), "expand") == ("a", "b")
    assert decode("items[][price]=5") == {"items": {"0": {"price": "5"}}}


def test_a_deeply_nested_name_is_taken_literally() -> None:
    """Nobody can make the service recurse as deep as he likes."""
    name = "a" + "[b]" * 5000
    assert decode(f"{name}=1") == {name: "1"}


def test_unpaired_brackets_are_part_of_the_name() -> None:
    """An ill-formed name is kept and means nothing."""
    assert decode("a[b=1&c]=2&[d]=3") == {"a[b": "1", "c]": "2", "[d]": "3"}


def test_a_later_value_wins_over_one_of_another_shape() -> None:
    """Text and form under one name do not meet; the later one stays."""
    assert decode("a=1&a[b]=2") == {"a": {"b": "2"}}
    assert decode("a[b]=2&a=1") == {"a": "1"}


def test_an_empty_value_reads_as_unset() -> None:
    """Stripe takes an empty value for "unset"."""
    form = decode("description=&metadata=&expand=")
    assert text_of(form, "description") is None
    assert form_of(form, "metadata") == {}
    assert texts_of(form, "expand") == ()


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (text_of, "x[a]=1"),
        (form_of, "x=1"),
        (texts_of, "x=1"),
        (texts_of, "x[0][a]=1"),
        (flag_of, "x=yes"),
    ],
)
def test_a_value_of_the_wrong_shape_is_refused_by_name(read: Any, text: str) -> None:
    """The refusal names the parameter, as Stripe's does."""
    with pytest.raises(RefusedError) as caught:
        read(decode(text), "x")
    assert caught.value.refusal.param == "x"
    assert caught.value.refusal.status == 400


@pytest.mark.parametrize(
    ("amount", "currency", "words"),
    [
        (4200, "eur", "42.00 EUR"),
        (5, "USD", "0.05 USD"),
        (500, "jpy", "500 JPY"),
        (1234, "kwd", "1.234 KWD"),
        (500, "ugx", "5.00 UGX"),
    ],
)
def test_money_has_the_digits_of_its_currency(amount: int, currency: str, words: str) -> None:
    """Each currency is counted in its own smallest unit."""
    assert money(amount, currency) == words
