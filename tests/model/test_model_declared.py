"""Declared effects: how they are read, and what is said of a run that does something else."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from chaoskit.cli.words import read_declared
from chaoskit.model.declared import Declared, check_fields, declared, differences
from chaoskit.model.effects import Effect, flatten
from chaoskit.model.errors import UsageError


def charge(who: str) -> Effect:
    """A charge that keeps its customer one level down."""
    fields = flatten({"amount": 100, "metadata": {"customer": who}})
    return Effect(service="payments", kind="charge", fields=fields, who=who, what="charge")


DONE = [charge("ann"), charge("bob")]


def test_a_number_and_the_rows_of_a_file_are_read(tmp_path: Path) -> None:
    """CSV with a header, as spreadsheets write it too, and a JSON list say the same."""
    assert read_declared("payments.charge=12") == Declared("payments.charge", 12)
    rows = Declared("payments.*", 2, ({"customer": "ann"}, {"customer": "bob"}))
    (tmp_path / "a.csv").write_text("\ufeffcustomer\nann\nbob\n", encoding="utf-8")
    (tmp_path / "a.json").write_text('[{"customer": "ann"}, {"customer": "bob"}]')
    for name in ("a.csv", "a.json"):
        read = read_declared(f"payments.*={tmp_path / name}")
        assert read == msgspec.structs.replace(rows, origin=f"--expect {tmp_path / name}")
    assert declared({"payments.*": [{"customer": "ann"}, {"customer": "bob"}]}) == (rows,)


@pytest.mark.parametrize("text", ["12", "=12", "payments.charge=", "a=/no/such/file.csv"])
def test_what_says_nothing_is_refused(text: str) -> None:
    """With the form that it takes, or the file that cannot be read."""
    with pytest.raises(UsageError, match=r"--expect takes|cannot be read|there is no"):
        read_declared(text)


RAGGED = {
    "": "line 1 is empty: the first line names the fields",
    "customer,\nann,1\n": "line 1: column 2 has no name",
    "customer,customer\nann,bob\n": "line 1 names 'customer' twice",
    "customer;amount\nann;100\n": "line 1 is one name, 'customer;amount': put commas",
    "customer,amount\nann,100\n\nbob\n": "line 4: 1 cell, and the header has 2 (customer, amount)",
    "customer,amount\nann, dr,100\n": "line 2: 3 cells, and the header has 2",
    'customer,amount\n"ann,100\nbob,100\n': "line 3: unexpected end of data; look for a quote",
}
"""Contents of CSV files, and what is said of each."""


@pytest.mark.parametrize("content", RAGGED)
def test_a_ragged_file_is_refused_with_its_line(tmp_path: Path, content: str) -> None:
    """The message names the file, the line and what to change there."""
    file = tmp_path / "a.csv"
    file.write_text(content)
    with pytest.raises(UsageError) as refused:
        read_declared(f"payments.charge={file}")
    assert f"--expect {file}" in str(refused.value)
    assert RAGGED[content] in str(refused.value)


def test_a_field_that_no_effect_has_is_refused_with_the_nearest_ones() -> None:
    """A wrong name in a header is a usage error; an operation that is never done is judged."""
    wanted = declared({"payments.charge": [{"custmer": "ann"}], "email.send": [{"a": "b"}]})
    with pytest.raises(UsageError, match=r"has no field 'custmer'; nearest: metadata.customer"):
        check_fields(wanted, DONE)
    check_fields(declared({"payments.*": [{"customer": "eve", "who": "ann", "amount": 3}]}), DONE)
    check_fields(wanted[1:], DONE)


@pytest.mark.parametrize("wanted", [-1, True, "12", [1], [{}]])
def test_what_is_neither_a_number_nor_rows_is_refused(wanted: object) -> None:
    """A negative number, a truth value, a text, and rows without a field."""
    with pytest.raises(UsageError, match="is a number, or a list of mappings"):
        declared({"payments.charge": wanted})


def test_what_is_done_as_declared_needs_no_word() -> None:
    """By number, by the end of a field's name, and by who is concerned."""
    for wanted in (2, [{"customer": "bob"}, {"who": "ann"}], [{"amount": 100}, {"amount": 100}]):
        assert not list(differences(declared({"payments.*": wanted}), DONE))
    assert not list(differences(declared({"email.send": 0}), DONE))


def test_who_is_missing_and_who_was_not_declared_is_named() -> None:
    """Also where the number is right; of an operation that is never done, what is done instead."""
    (said,) = differences(declared({"payments.charge": [{"who": "ann"}, {"who": "eve"}]}), DONE)
    assert "declared and not done: who=eve; done and not declared: charge to bob" in said
    (said,) = differences(declared({"payments.charg": 2}), DONE)
    assert "declared 2 times, and an undisturbed run does it 0 times (it does payments" in said
