"""Declared effects: how they are read, and what is said of a run that does something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaoskit.cli.words import read_declared
from chaoskit.model.declared import Declared, declared, differences
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
        assert read_declared(f"payments.*={tmp_path / name}") == rows
    assert declared({"payments.*": [{"customer": "ann"}, {"customer": "bob"}]}) == (rows,)


@pytest.mark.parametrize("text", ["12", "=12", "payments.charge=", "a=/no/such/file.csv"])
def test_what_says_nothing_is_refused(text: str) -> None:
    """With the form that it takes, or the file that cannot be read."""
    with pytest.raises(UsageError, match=r"--expect takes|cannot be read|there is no"):
        read_declared(text)


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
