"""Fingerprints of inputs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoskit.runtime.errors import Misuse
from chaoskit.runtime.fingerprint import WHOLE, differences, fingerprint

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(), JSON))
def test_the_order_of_keys_makes_no_difference(inputs: dict[str, object]) -> None:
    """Equal mappings have equal fingerprints, in whichever order they were built."""
    turned = dict(reversed(inputs.items()))
    assert differences(fingerprint(inputs), fingerprint(turned)) == ""


@settings(deadline=None)
@given(st.dictionaries(st.text(min_size=1), JSON, min_size=1), st.data())
def test_a_changed_field_is_named_with_both_digests(
    inputs: dict[str, object], data: st.DataObject
) -> None:
    """Whichever field changes, the difference names it, its old digest and its new one."""
    field = data.draw(st.sampled_from(sorted(inputs)))
    before = fingerprint(inputs)
    after = fingerprint({**inputs, field: ["changed", inputs[field]]})
    assert differences(before, after) == (
        f"field {field!r} (recorded {before[field]}, given {after[field]})"
    )


def test_a_field_that_appears_or_goes_is_a_difference() -> None:
    """A field on one side only is reported as absent on the other."""
    before, after = fingerprint({"old": 1, "same": 2}), fingerprint({"new": 1, "same": 2})
    found = differences(before, after)
    assert f"field 'new' (recorded absent, given {after['new']})" in found
    assert f"field 'old' (recorded {before['old']}, given absent)" in found
    assert "same" not in found


def test_inputs_that_are_no_mapping_are_compared_as_a_whole() -> None:
    """A list has one digest, and a tuple of the same things has the same one."""
    assert fingerprint([1, 2]) == fingerprint((1, 2))
    assert set(fingerprint([1, 2])) == {WHOLE}
    assert "the inputs as a whole" in differences(fingerprint([1]), fingerprint([2]))


def test_no_inputs_and_empty_inputs_differ() -> None:
    """None, an empty mapping and an empty list are three different inputs, not one falsy value."""
    assert differences(fingerprint(None), fingerprint({}))
    assert differences(fingerprint([]), fingerprint({}))
    assert differences(fingerprint(None), fingerprint([]))


@pytest.mark.parametrize("inputs", [{"a": object()}, {"a": float("nan")}, {1: "a"}, b"raw", {1, 2}])
def test_inputs_without_a_json_form_are_refused_with_the_fix(inputs: object) -> None:
    """What has no canonical text is an error of the caller, before anything is recorded."""
    with pytest.raises(Misuse, match=r"plain JSON values|write str\(key\)"):
        fingerprint(inputs)
