"""PostgreSQL's messages, and what a statement does to a transaction."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_services.postgres.units import Block, Cutter
from fake_services.postgres.wire import Frames, Message, first_message, message, statements

MESSAGES = st.lists(st.tuples(st.sampled_from("QPBESd"), st.binary(max_size=20)), max_size=6)


@given(MESSAGES, st.data())
def test_messages_are_the_same_however_they_arrive(
    sent: Sequence[tuple[str, bytes]], data: st.DataObject
) -> None:
    """Cut into pieces anywhere, the same messages come out, and their bytes are those sent."""
    whole = first_message(user="a") + b"".join(message(*one) for one in sent)
    frames = Frames(untyped=True)
    found: list[Message] = []
    rest = whole
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        for one in frames.feed(rest[:size]):
            frames.untyped = False
            found.append(one)
        rest = rest[size:]
    assert [(one.kind, one.content) for one in found[1:]] == list(sent)
    assert b"".join(one.raw for one in found) == whole


def test_a_length_that_cannot_be_is_refused() -> None:
    """It would never end."""
    with pytest.raises(ValueError, match="length 3"):
        list(Frames().feed(b"Q\0\0\0\3"))


@given(st.text(max_size=60))
def test_any_text_is_some_statements(sql: str) -> None:
    """Whatever is sent can be cut."""
    assert all(statement.strip() for statement in statements(sql))


@pytest.mark.parametrize(
    ("sql", "deeds"),
    [
        (["BEGIN", "INSERT INTO a VALUES (1)", "COMMIT"], [None, None, "commit"]),
        (["start transaction", "END"], [None, "commit"]),
        (["BEGIN", "ROLLBACK", "INSERT INTO a VALUES (1)"], [None, None, "statement"]),
        (["BEGIN", "ROLLBACK TO s", "INSERT INTO a VALUES (1)"], [None, None, None]),
        (["COMMIT"], [None]),
        (["BEGIN; INSERT INTO a VALUES (1); COMMIT"], ["commit"]),
        (["BEGIN", "COMMIT AND CHAIN", "COMMIT", "COMMIT"], [None, "commit", "commit", None]),
        (["SELECT 'INSERT; COMMIT'", 'SELECT 1 AS "a;INSERT"'], [None, None]),
        (["/* hi */ insert into a values (1)", "-- hi\n(delete from a)"], ["statement"] * 2),
        (["WITH x AS (SELECT 1) SELECT 1"], [None]),
        (["WITH x AS (DELETE FROM a) SELECT 1"], ["statement"]),
        (["CREATE TABLE a ()", "SET x = 1", ""], ["statement", None, None]),
        (["DO $$ begin commit; end $$", "SELECT $a$ ; $b$ ; $a$"], ["statement", None]),
        (["COMMIT PREPARED 'x'"], [None]),
    ],
)  # fmt: skip
def test_what_a_statement_does(sql: Sequence[str], deeds: Sequence[str | None]) -> None:
    """A COMMIT counts where a block is open, a change where none is; quotes and comments do not."""
    cutter, block = Cutter(), Block()
    found = []
    for text in sql:
        for unit in cutter.feed(Message("Q", text.encode() + b"\0", b"")):
            found.append(block.deed_of(unit))
            block.ready("T" if block.open else "I")  # as the server would say
    assert found == list(deeds)


def test_prepared_statements_are_known_by_their_names() -> None:
    """What is executed is what was prepared, however long ago; a Flush does not commit."""
    cutter, block = Cutter(), Block()
    said = [
        ("P", b"one\0INSERT INTO a VALUES ($1)\0\0\0"),
        ("S", b""),
        ("B", b"\0one\0\0\0\0\0\0\0"),
        ("E", b"\0\0\0\0\0"),
        ("H", b""),
        ("S", b""),
    ]
    units = [unit for kind, data in said for unit in cutter.feed(Message(kind, data, data))]
    assert [unit.ready for unit in units] == [True, False, True]
    deeds = []
    for unit in units:
        deeds.append(block.deed_of(unit))
        if unit.ready:
            block.ready("I")
    assert deeds == [None, None, "statement"]
