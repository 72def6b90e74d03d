"""Replay tokens: complete, and refused as soon as a letter is wrong."""

from __future__ import annotations

import base64
import zlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chaoskit.model.errors import FormatError, UsageError
from chaoskit.model.schedule import parse_schedule
from chaoskit.model.token import PREFIX, CommandSpec, ReplayToken, Target, parse_token
from tests.model.values import ANY_TEXT, BEHAVIOURS, SCHEDULES

TEXTS = st.lists(st.text(), max_size=3).map(tuple)

COMMANDS = st.builds(
    CommandSpec,
    command=st.lists(st.text(), min_size=1, max_size=4).map(tuple),
    resume=TEXTS,
    env=st.dictionaries(st.text(), st.text(), max_size=3),
    services=TEXTS,
    outputs=TEXTS,
    contract=st.dictionaries(st.text(), st.text(), max_size=2),
    behaviours=st.lists(BEHAVIOURS.map(str), max_size=2).map(tuple),
    tables=st.text(),
    timeout_s=st.none() | st.floats(min_value=0.001, max_value=1e6),
    prepare=TEXTS,
    ignore=TEXTS,
    attempts_max=st.integers(min_value=1),
    success=st.lists(st.integers(0, 255), min_size=1).map(tuple),
)

TARGETS = st.builds(Target, scenario=st.text()) | st.builds(Target, command=COMMANDS)

TOKENS = st.builds(
    ReplayToken,
    target=TARGETS,
    seed=st.integers(),
    schedule=SCHEDULES.map(str),
    fingerprint=st.text("0123456789abcdef", max_size=8),
    take=st.none() | st.integers(min_value=0),
)

TOKEN = ReplayToken(
    target=Target(scenario="scenarios/sound/forty_calls.py"),
    seed=7,
    schedule="kill@payments.charge#3.applied",
    fingerprint="0badcafe",
)


def sealed(body: str) -> str:
    """``body`` as a token whose check digits are right."""
    return f"{PREFIX}{body}{zlib.crc32(body.encode()) & 0xFFFF:04x}"


def packed(data: bytes) -> str:
    """Any bytes as a token whose packing and check digits are right."""
    return sealed(base64.urlsafe_b64encode(zlib.compress(data)).decode().rstrip("="))


@given(TOKENS)
def test_every_token_comes_back_from_its_text(token: ReplayToken) -> None:
    """Parsing is the inverse of printing: scenario or command, with any text in any place."""
    assert parse_token(str(token)) == token


@given(TOKENS)
def test_a_token_is_one_word_that_survives_a_shell(token: ReplayToken) -> None:
    """Letters, digits, dash and underscore only, so that it can be pasted without quotes."""
    text = str(token)
    assert text.isascii()
    assert text.replace("-", "").replace("_", "").isalnum()
    assert text.startswith(PREFIX)


@given(TOKENS, st.sampled_from(["", " ", "\n", "\r\n\t"]))
def test_blanks_around_a_pasted_token_mean_nothing(token: ReplayToken, blank: str) -> None:
    """A terminal adds blanks and line ends when a token is copied."""
    assert parse_token(f"{blank}{token}{blank}") == token


@given(TOKENS)
def test_the_schedule_in_a_token_can_be_run(token: ReplayToken) -> None:
    """The schedule comes back as text that parses."""
    assert str(parse_schedule(parse_token(str(token)).schedule)) == token.schedule


@given(ANY_TEXT)
@example("\udcff")
def test_a_name_that_no_text_can_hold_is_refused_in_words(name: str) -> None:
    """An argument that is not UTF-8 has a token all the same, or is refused as a usage error."""
    token = ReplayToken(
        target=Target(command=CommandSpec(command=(name,))), seed=0, schedule="none"
    )
    try:
        text = str(token)
    except UsageError:
        return
    assert parse_token(text) == token


@given(TOKENS, st.data())
def test_a_token_that_was_cut_is_refused(token: ReplayToken, data: st.DataObject) -> None:
    """However much of its end is missing."""
    text = str(token)
    cut = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(FormatError):
        parse_token(text[:cut])


@given(TOKENS, st.data())
def test_a_token_with_one_wrong_letter_is_refused(token: ReplayToken, data: st.DataObject) -> None:
    """Wherever the letter stands, the check digits included."""
    text = str(token)
    at = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.characters(codec="ascii").filter(lambda c: not c.isspace()))
    if letter == text[at]:
        letter = "~"
    with pytest.raises(FormatError):
        parse_token(text[:at] + letter + text[at + 1 :])


@given(ANY_TEXT)
@example("ck1-\ud800abcd")
@example("ck1-")
@example("ck1-0000")
def test_any_text_is_refused_and_never_with_another_exception(text: str) -> None:
    """Text that is no token is a format error, with or without the right prefix."""
    for candidate in (text, PREFIX + text):
        with pytest.raises(FormatError):
            parse_token(candidate)


@given(st.text())
@example("é")
@example("a")
@example("====")
def test_right_check_digits_do_not_make_a_token(body: str) -> None:
    """What stands between prefix and check digits must be a token's own packing."""
    with pytest.raises(FormatError):
        parse_token(sealed(body))


@given(st.binary())
@example(b"")
@example(b"{}")
@example(b'{"target":{"scenario":"\xff"},"seed":1,"schedule":"none"}')
@example(b'{"target":{},"seed":"1","schedule":"none"}')
@example(b'{"target":{},"seed":1}')
def test_right_packing_does_not_make_a_token(data: bytes) -> None:
    """What is packed must be a token's own fields, of their own types."""
    with pytest.raises(FormatError):
        parse_token(packed(data))


def test_nesting_without_an_end_is_refused() -> None:
    """A packing that would exhaust the reader's stack is a format error as any other."""
    with pytest.raises(FormatError):
        parse_token(packed(b'{"later": ' + b"[" * 100_000))


@pytest.mark.parametrize("prefix", ["", "ck0-", "ck2-", "CK1-", "ck1_", "xck1-"])
def test_a_token_of_another_version_is_refused_by_its_prefix(prefix: str) -> None:
    """The refusal says which prefix was found and which one is read."""
    text = str(TOKEN).replace(PREFIX, prefix)
    with pytest.raises(FormatError) as refused:
        parse_token(text)
    assert f"it begins with {text[:8]!r}, not 'ck1-'" in str(refused.value)


def test_a_damaged_token_is_refused_with_what_to_do() -> None:
    """The most frequent damage is an incomplete copy, and the refusal says so."""
    with pytest.raises(FormatError, match="damaged or cut short: paste the whole of it"):
        parse_token(str(TOKEN)[:-1])


def test_a_target_is_labelled_by_what_the_user_wrote() -> None:
    """The scenario's path, or the command line."""
    assert TOKEN.target.label == "scenarios/sound/forty_calls.py"
    assert Target(command=CommandSpec(command=("node", "task.js"))).label == "node task.js"
