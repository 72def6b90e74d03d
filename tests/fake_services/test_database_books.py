"""The books as a pure function: from the lines of the ledger table to effects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fake_services.database.books import Books, Entry, decode_row
from fake_services.database.schema import Table

RECEIPTS = Table(
    "receipts",
    ("id", "order_id", "amount", "made"),
    primary_key=("id",),
    rowid_alias="id",
    varying=frozenset({"made"}),
    unique=(("id",), ("order_id",)),
)


def encoded(values: Mapping[str, int | str | bytes | None]) -> str:
    """A row as a trigger writes it."""
    return json.dumps([{name: _encoded(value) for name, value in values.items()}])


def _encoded(value: int | str | bytes | None) -> int | str | None:
    if isinstance(value, bytes):
        return f"b:{value.hex()}"
    return f"t:{value}" if isinstance(value, str) else value


def row(row_id: int, order: int, amount: int) -> dict[str, Any]:
    """A receipt."""
    return {"id": row_id, "order_id": order, "amount": amount, "made": f"at {row_id}"}


def insert(row_id: int, order: int, amount: int, *, assigned: bool | None = True) -> Entry:
    """The booking of an insert."""
    return Entry("insert", "receipts", encoded(row(row_id, order, amount)), assigned=assigned)


def told(books: Books, *entries: Entry) -> list[tuple[str, dict[str, str], str]]:
    """Kind, fields and ref of the effects of ``entries``."""
    return [(e.kind, dict(e.fields), e.ref) for e in books.read(entries)]


def test_an_insert_shows_what_was_asked_for() -> None:
    """A key that SQLite made up is the effect's reference, and a default from the clock is left."""
    assert told(Books([RECEIPTS]), insert(1, 17, 5)) == [
        ("receipts.insert", {"order_id": "17", "amount": "5"}, "1")
    ]


def test_a_key_that_was_given_is_part_of_the_effect() -> None:
    """An INTEGER PRIMARY KEY that the writer chose says which row it meant."""
    ((_, fields, _),) = told(Books([RECEIPTS]), insert(1, 17, 5, assigned=False))
    assert fields == {"id": "1", "order_id": "17", "amount": "5"}


def test_an_unseen_assignment_is_guessed_from_autoincrement() -> None:
    """Where nobody saw who chose the key, the table's declaration decides."""
    auto = Table("receipts", RECEIPTS.columns, ("id",), "id", autoincrement=True)
    unseen = insert(1, 17, 5, assigned=None)
    assert "id" not in told(Books([auto]), unseen)[0][1]
    assert "id" in told(Books([RECEIPTS]), unseen)[0][1]


def test_replacing_a_row_by_itself_is_no_effect() -> None:
    """INSERT OR REPLACE of what is there already changes nothing, though it gets a new rowid."""
    assert told(Books([RECEIPTS]), insert(1, 17, 5), insert(2, 17, 5))[1:] == []


def test_replacing_a_row_by_another_is_an_update() -> None:
    """A replaced row is shown by what differs, and is not a second insert."""
    _, again = told(Books([RECEIPTS]), insert(1, 17, 5), insert(2, 17, 6))
    assert again == ("receipts.update", {"order_id": "17", "amount": "6", "was.amount": "5"}, "2")


def test_replacing_two_rows_is_an_update_and_a_delete() -> None:
    """A row that takes the place of two leaves one of them deleted."""
    books = Books([RECEIPTS])
    kinds = [e[0] for e in told(books, insert(1, 17, 5), insert(2, 18, 5), insert(1, 18, 6))]
    assert kinds[2:] == ["receipts.delete", "receipts.update"]


def test_rows_from_the_start_can_be_replaced() -> None:
    """A row that was there before the first booking is known as well."""
    books = Books([RECEIPTS], [("receipts", row(1, 17, 5))])
    assert told(books, insert(1, 17, 5, assigned=False)) == []


def test_an_update_that_changes_nothing_is_no_effect() -> None:
    """An effect is a change in the world; writing the same values again is none."""
    books = Books([RECEIPTS])
    same = Entry("update", "receipts", encoded(row(1, 17, 5)), encoded(row(1, 17, 5)))
    assert told(books, insert(1, 17, 5), same)[1:] == []


def test_an_update_shows_new_values_and_the_old_ones_that_differ() -> None:
    """Old values stand under ``was``; a made-up key stays out of them."""
    change = Entry("update", "receipts", encoded(row(1, 17, 6)), encoded(row(1, 17, 5)))
    assert told(Books([RECEIPTS]), insert(1, 17, 5), change)[1] == (
        "receipts.update",
        {"order_id": "17", "amount": "6", "was.amount": "5"},
        "1",
    )


def test_a_deleted_row_can_come_again() -> None:
    """After a delete the same insert is an insert once more."""
    delete = Entry("delete", "receipts", encoded(row(1, 17, 5)))
    kinds = [e[0] for e in told(Books([RECEIPTS]), insert(1, 17, 5), delete, insert(2, 17, 5))]
    assert kinds == ["receipts.insert", "receipts.delete", "receipts.insert"]


def test_nulls_are_never_the_same() -> None:
    """Two rows without a value in a unique column are two rows."""
    table = Table("t", ("a",), unique=(("a",),))
    entry = Entry("insert", "t", encoded({"a": None}), assigned=False)
    assert len(Books([table]).read([entry, entry])) == 2


def test_equal_rows_without_a_key_are_counted() -> None:
    """In a table without a key the same row twice is two effects."""
    entry = Entry("insert", "log", encoded({"line": "x"}), assigned=False)
    assert len(Books([]).read([entry, entry])) == 2


def test_who_is_the_most_telling_column() -> None:
    """A report names a row by a name before an id, and by its first column if nothing fits."""
    cases: tuple[tuple[dict[str, int | str | None], str], ...] = (
        ({"id": 1, "Email": "a@b", "note": "x"}, "a@b"),
        ({"note": "x", "id": 1}, "1"),
        ({"name": None, "id": 1}, "1"),
        ({"note": "x", "other": "y"}, "x"),
    )
    for columns, who in cases:
        (effect,) = Books([]).read([Entry("insert", "t", encoded(columns))])
        assert (effect.who, effect.what) == (who, "row inserted in t")


def test_a_long_value_is_shortened() -> None:
    """A megabyte in a row is a head and a digest in its effect."""
    text = encoded({"a": "x" * 1_000_000, "b": b"y" * 1000})
    (effect,) = Books([]).read([Entry("insert", "t", text)])
    assert all(len(value) < 700 for _, value in effect.fields)


def test_a_row_is_read_back_with_its_types() -> None:
    """Every kind of value has its form in the ledger; text that looks like another stays text."""
    chunks = [
        {"i": 1, "n": None, "t": "t:r:1.5", "b": "b:00FF"},
        {"r": "r:1.5", "inf": "r:-Inf", "big": "r:9.0e+999"},
    ]
    assert decode_row(json.dumps(chunks)) == {
        "i": 1,
        "n": None,
        "t": "r:1.5",
        "b": b"\x00\xff",
        "r": 1.5,
        "inf": float("-inf"),
        "big": float("inf"),
    }
