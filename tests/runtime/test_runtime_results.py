"""Results as JSON text."""

from __future__ import annotations

import asyncio
import enum
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoskit.runtime.errors import UnstorableResult
from chaoskit.runtime.results import decode, encode

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


class Colour(enum.IntEnum):
    """A whole number that is more than one."""

    RED = 1


class Name(str):
    """A text that is more than one."""

    __slots__ = ()


def _typed(value: object) -> object:
    """``value`` with the type of each part made visible, since 1 == True == 1.0."""
    if isinstance(value, list):
        return [_typed(item) for item in value]
    if isinstance(value, dict):
        return {key: _typed(item) for key, item in value.items()}
    return type(value), repr(value)


@settings(deadline=None)
@given(JSON)
def test_every_json_value_comes_back_exactly(value: object) -> None:
    """Encoding and decoding gives equal values of equal types, signs of zero included."""
    assert _typed(decode(encode(value, "step 'a'", ""))) == _typed(value)


@settings(deadline=None)
@given(st.text(st.characters(codec=None)))
def test_text_comes_back_exactly_or_is_refused(value: str) -> None:
    """Any text at all, lone surrogates too, is never silently another text after a resume."""
    try:
        text = encode(value, "step 'a'", "")
    except UnstorableResult:
        return
    assert decode(text) == value


@pytest.mark.parametrize(
    ("value", "fix"),
    [
        ((1, 2), "the result is a tuple: return a list"),
        ({"rows": [{"a": {1}}]}, r"the result\['rows'\]\[0\]\['a'\] is a set: return a sorted"),
        (b"raw", "is a bytes: return text"),
        (math.nan, "is nan: return None or text"),
        ([math.inf], r"the result\[0\] is inf"),
        ({1: "a"}, r"has the key 1, which JSON makes text: write str\(key\)"),
        ({True: "a"}, "has the key True"),
        (Colour.RED, "is a Colour: return plain"),
        (Name("x"), "is a Name: return plain"),
        (object(), "is a object: return plain"),
        ("\ud83d\ude00", "well-formed Unicode"),
        pytest.param(10**5000, "has no JSON form", id="huge"),
    ],
)
def test_what_would_come_back_changed_is_refused_with_the_fix(value: object, fix: str) -> None:
    """A result that a resume could not give back names its offending part and what to return."""
    with pytest.raises(UnstorableResult, match=fix) as caught:
        encode(value, "step 'charge/1'", "The effect happened")
    assert str(caught.value).startswith("step 'charge/1': ")
    assert str(caught.value).endswith(". The effect happened")


def test_an_endless_result_is_refused() -> None:
    """A list that holds itself ends in the same error, not in a crash of the interpreter."""
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(UnstorableResult, match="no JSON form"):
        encode(endless, "step 'a'", "")


def test_a_forgotten_await_is_named() -> None:
    """A coroutine as result says that the async variant is meant."""
    waiting = asyncio.sleep(0)
    with pytest.raises(UnstorableResult, match="coroutine that nobody awaited: use async_step"):
        encode(waiting, "step 'a'", "")
    waiting.close()


def test_an_absent_result_is_not_none() -> None:
    """Nothing stored is an error, while a stored None is a result."""
    assert decode(encode(None, "step 'a'", "")) is None
    with pytest.raises(ValueError, match="no result is stored"):
        decode(None)
