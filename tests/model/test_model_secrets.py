"""Secrets are kept out of books and reports, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.effects import flatten
from chaoskit.model.secrets import BLOT, is_secret_name, without_secrets


@pytest.mark.parametrize(
    "name", ["password", "source.cvc", "card.number", "a.b.API_KEY", "Authorization", "x.secret"]
)
def test_fields_with_secret_names_are_blotted_out(name: str) -> None:
    """A field whose name says that it is secret never shows its value, whatever its type."""
    assert is_secret_name(name)
    assert flatten({name: "4242424242424242"}) == ((name, BLOT),)
    assert flatten({name: 42}) == ((name, BLOT),)


@pytest.mark.parametrize("name", ["number", "order.number", "secretary", "key", "description"])
def test_fields_with_business_names_are_kept(name: str) -> None:
    """An order's number is part of its identity."""
    assert flatten({name: "17"}) == ((name, "17"),)


@pytest.mark.parametrize(
    "secret",
    [
        "sk_live_51Habcdefgh",
        "Authorization: Bearer abcdefgh12345678",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_abcdefghijklmnopqrstuvwxyz0123",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_credentials_are_known_by_their_shape(secret: str) -> None:
    """A credential in the middle of a text is blotted out, and the text around it stays."""
    text = without_secrets(f"before {secret} after")
    assert secret not in text
    assert BLOT in text
    assert text.startswith("before ")
    assert text.endswith(" after")


@given(st.text(alphabet="abc def 0123456789 .,@-", max_size=200))
def test_ordinary_text_is_left_alone(text: str) -> None:
    """Words, numbers and addresses pass unchanged."""
    assert without_secrets(text) == text
