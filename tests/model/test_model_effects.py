"""Effects, and when two of them are the same business fact."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.effects import Effect, Fields, Identity, flatten, identity_of
from tests.model.values import EFFECTS, JSON_MAPPINGS


@pytest.mark.parametrize(
    ("values", "fields"),
    [
        ({}, ()),
        ({"amount": 4200, "currency": "eur"}, (("amount", "4200"), ("currency", "eur"))),
        ({"b": "2", "a": "1"}, (("a", "1"), ("b", "2"))),
        ({"metadata": {"order": 7}}, (("metadata.order", "7"),)),
        ({"to": ["ada", "bob"]}, (("to.0", "ada"), ("to.1", "bob"))),
        ({"items": ({"sku": "x"},)}, (("items.0.sku", "x"),)),
        ({"note": None, "paid": True}, (("note", ""), ("paid", "True"))),
    ],
)
def test_nested_values_become_named_texts(values: dict[str, object], fields: Fields) -> None:
    """Mappings give dotted names, sequences numbered ones, and everything is text."""
    assert flatten(values) == fields


def leaves(value: object) -> list[str]:
    """The texts of all values that are no containers."""
    if isinstance(value, Mapping):
        return [leaf for inner in value.values() for leaf in leaves(inner)]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in leaves(inner)]
    return ["" if value is None else str(value)]


@given(JSON_MAPPINGS)
def test_flattening_keeps_every_leaf_and_sorts(values: dict[str, object]) -> None:
    """No value gets lost or doubled, and the names are in order."""
    fields = flatten(values)
    assert sorted(text for _, text in fields) == sorted(leaves(values))
    assert list(fields) == sorted(fields)


@given(JSON_MAPPINGS, st.randoms(use_true_random=False))
def test_flattening_does_not_see_the_order_of_names(
    values: dict[str, object], random: Random
) -> None:
    """The same values give the same fields, in whatever order they were sent."""
    items = list(values.items())
    random.shuffle(items)
    assert flatten(dict(items)) == flatten(values)


@given(JSON_MAPPINGS)
def test_a_prefix_stands_before_every_name(values: dict[str, object]) -> None:
    """Flattening under a prefix is flattening with each name prefixed."""
    plain = flatten(values)
    assert sorted(flatten(values, "metadata.")) == sorted((f"metadata.{n}", v) for n, v in plain)


@given(EFFECTS)
def test_the_identity_is_service_kind_and_fields(effect: Effect) -> None:
    """Without volatile or chosen fields all of them count."""
    identity = identity_of(effect, {})
    assert identity == Identity(effect.service, effect.kind, effect.fields)
    assert identity.operation == effect.operation == f"{effect.service}.{effect.kind}"


@given(EFFECTS, st.text(max_size=3), st.none() | st.text(max_size=3), st.text(max_size=3))
def test_words_keys_and_ids_are_not_part_of_the_identity(
    effect: Effect, words: str, key: str | None, ref: str
) -> None:
    """Who, what, the idempotency key and the service's id may differ."""
    other = Effect(
        service=effect.service,
        kind=effect.kind,
        fields=effect.fields,
        who=words,
        what=words,
        key=key,
        ref=ref,
    )
    assert identity_of(other, {}) == identity_of(effect, {})


@given(EFFECTS, st.data())
def test_volatile_fields_are_left_out(effect: Effect, data: st.DataObject) -> None:
    """Exactly the named fields of exactly this operation."""
    names = [name for name, _ in effect.fields]
    volatile = data.draw(st.sets(st.sampled_from(names))) if names else set()
    kept = tuple(pair for pair in effect.fields if pair[0] not in volatile)
    assert identity_of(effect, {effect.operation: volatile}).fields == kept
    assert identity_of(effect, {f"{effect.operation}x": names}).fields == effect.fields


@given(EFFECTS, st.data())
def test_chosen_fields_are_the_only_ones_kept(effect: Effect, data: st.DataObject) -> None:
    """The scenario's own identity overrules what the surveys found volatile."""
    names = [name for name, _ in effect.fields]
    chosen = data.draw(st.sets(st.sampled_from(names))) if names else set()
    kept = tuple(pair for pair in effect.fields if pair[0] in chosen)
    mine = {effect.operation: tuple(chosen)}
    assert identity_of(effect, {effect.operation: names}, mine).fields == kept
    assert identity_of(effect, {}, {f"{effect.operation}x": ()}).fields == effect.fields


@pytest.mark.parametrize(
    ("what", "who", "words"),
    [
        ("charge of 42.00 EUR", "ada", "charge of 42.00 EUR to ada"),
        ("charge of 42.00 EUR", "", "charge of 42.00 EUR"),
        ("", "ada", "payments.charge to ada"),
        ("", "", "payments.charge"),
    ],
)
def test_an_effect_is_told_in_words(what: str, who: str, words: str) -> None:
    """The deed and the person, or the operation where there are no words."""
    effect = Effect(service="payments", kind="charge", fields=(), who=who, what=what)
    assert effect.in_words() == words
