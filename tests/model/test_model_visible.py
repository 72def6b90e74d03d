"""What cannot be seen in a text is spelt out, and nothing else is changed."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.visible import visible


@given(st.text(st.characters(), max_size=200), st.sampled_from(["", "\n", "\n\t"]))
def test_only_what_is_kept_remains_unseen(text: str, keep: str) -> None:
    """No control, format, surrogate or separator but those of ``keep``; twice is as once."""
    shown = visible(text, keep)
    left = {c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}
    assert left == set(text) & set(keep)
    assert visible(shown, keep) == shown
    shown.encode()


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=200))
def test_what_can_be_seen_is_left_alone(text: str) -> None:
    """Letters, digits, signs and spaces of any script stay as they are."""
    assert visible(text) == text


def test_each_kind_of_character_has_its_spelling() -> None:
    """Line ends by name, others by number, as Python writes them."""
    assert visible("a\n\r\t\x1b\u202e\udcff\U000e0001") == (
        "a\\n\\r\\t\\x1b\\u202e\\udcff\\U000e0001"
    )
