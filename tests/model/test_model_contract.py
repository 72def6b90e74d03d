"""Contracts as text and as value."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chaoskit.model.contract import (
    GUARANTEES,
    Contract,
    Guarantee,
    parse_contract,
    parse_guarantee,
)
from chaoskit.model.errors import UsageError
from tests.model.values import ANY_TEXT, CONTRACTS, NAMES


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("", ()),
        ("payments.charge=exactly-once", (("payments.charge", "exactly-once"),)),
        (
            "email.send=at-least-once, database.*=at-most-once",
            (("email.send", "at-least-once"), ("database.*", "at-most-once")),
        ),
    ],
)
def test_each_form_names_its_contract(text: str, rules: tuple[tuple[str, Guarantee], ...]) -> None:
    """Rules are read and printed in the order in which they stand."""
    assert parse_contract(text) == Contract(rules)
    assert str(Contract(rules)) == text


@given(CONTRACTS)
def test_every_contract_comes_back_from_its_text(contract: Contract) -> None:
    """Parsing is the inverse of printing."""
    assert parse_contract(str(contract)) == contract


@given(ANY_TEXT | st.text("ab*=, -", max_size=12))
def test_any_text_is_a_contract_that_prints_alike_or_is_refused(text: str) -> None:
    """What is accepted prints as text that means the same; everything else is a usage error."""
    try:
        contract = parse_contract(text)
    except UsageError:
        return
    assert parse_contract(str(contract)) == contract


@given(st.dictionaries(st.text(max_size=8), st.sampled_from(GUARANTEES), max_size=3))
@example({"payments.charge, payments.refund": "at-least-once"})
@example({"payments.[a,b]": "at-least-once"})
@example({"payments.charge=": "at-least-once"})
@example({" payments.charge": "at-least-once"})
@example({"": "at-least-once"})
def test_a_declared_contract_can_be_written_down_or_is_refused(rules: dict[str, Guarantee]) -> None:
    """A scenario's pattern that the text form cannot hold is refused where it is declared: the
    checkers read the contract from its text.
    """
    try:
        contract = Contract.of(rules)
    except UsageError:
        return
    assert parse_contract(str(contract)) == contract


def test_the_first_rule_that_matches_decides() -> None:
    """Later rules are for what the earlier ones leave open; exactly once is for the rest."""
    contract = parse_contract(
        "payments.refund=at-most-once, payments.*=at-least-once, payments.charge=exactly-once"
    )
    assert contract.guarantee("payments.refund") == "at-most-once"
    assert contract.guarantee("payments.charge") == "at-least-once"
    assert contract.guarantee("email.send") == "exactly-once"


@given(NAMES)
def test_nothing_declared_means_exactly_once(operation: str) -> None:
    """The default of every operation."""
    assert Contract().guarantee(operation) == "exactly-once"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("payments.charge", "not a rule: 'payments.charge'; write payments.charge=exactly-once"),
        ("=at-most-once", "not a rule: '=at-most-once'"),
        ("a=exactly_once", "unknown guarantee 'exactly_once'; nearest: exactly-once"),
        ("a=at-least-one", "unknown guarantee 'at-least-one'; nearest: at-least-once"),
        ("a=", "unknown guarantee ''; nearest: at-least-once, at-most-once, exactly-once"),
    ],
)
def test_what_is_no_contract_is_refused_in_words(text: str, words: str) -> None:
    """The refusal shows the form, or the nearest guarantee."""
    with pytest.raises(UsageError) as refused:
        parse_contract(text)
    assert words in str(refused.value)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_each_guarantee_is_its_own_name(guarantee: Guarantee) -> None:
    """Every guarantee is read back as itself."""
    assert parse_guarantee(guarantee) == guarantee
