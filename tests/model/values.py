"""Any value of the model, for properties that hold for all of them."""

from __future__ import annotations

from hypothesis import strategies as st

from chaoskit.model.behaviours import KINDS, Behaviour
from chaoskit.model.contract import GUARANTEES, Contract
from chaoskit.model.effects import Effect, Fields
from chaoskit.model.points import WINDOWS, CrossingPoint, Point, TimePoint, WindowPoint
from chaoskit.model.schedule import Fault, Schedule, kill

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"

WORD = LETTERS + "0123456789"

ANY_TEXT = st.text(st.characters(codec=None))
"""Lone surrogates too, as they stand in arguments that are not UTF-8."""

NAMES = st.builds(
    str.__add__,
    st.sampled_from(WORD),
    st.text(WORD + "./:-", max_size=12),
)
"""Operations and crossings."""

SERVICES = st.builds(
    str.__add__,
    st.sampled_from(LETTERS),
    st.text(WORD + "éßπ", max_size=8),
)

ORDINALS = st.integers(1, 10**6) | st.integers(1, 10**18 - 1)

DELAYS = st.integers(0, 10**18 - 1)

POINTS: st.SearchStrategy[Point] = (
    st.builds(WindowPoint, SERVICES, NAMES, ORDINALS, st.sampled_from(WINDOWS))
    | st.builds(CrossingPoint, NAMES, ORDINALS)
    | st.builds(TimePoint, DELAYS)
)

FAULTS: st.SearchStrategy[Fault] = st.builds(kill, POINTS)

SCHEDULES = st.builds(
    Schedule,
    st.lists(st.lists(FAULTS, max_size=3).map(tuple), max_size=4).map(tuple),
)

BEHAVIOURS = st.sampled_from(KINDS).flatmap(
    lambda kind: st.builds(
        Behaviour,
        st.just(kind),
        SERVICES,
        NAMES,
        st.none() | ORDINALS,
        DELAYS if kind == "late-reply" else st.just(0),
    )
)

PATTERNS = st.text(WORD + ".*?[]!-", min_size=1, max_size=12)

CONTRACTS = st.builds(
    Contract,
    st.lists(st.tuples(PATTERNS, st.sampled_from(GUARANTEES)), max_size=4).map(tuple),
)

JSON_MAPPINGS = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    max_size=4,
)

FIELDS: st.SearchStrategy[Fields] = st.dictionaries(
    st.text(max_size=5), st.text(max_size=5), max_size=4
).map(lambda values: tuple(sorted(values.items())))

EFFECTS = st.builds(
    Effect,
    service=st.text(max_size=5),
    kind=st.text(max_size=5),
    fields=FIELDS,
    who=st.text(max_size=5),
    what=st.text(max_size=5),
    key=st.none() | st.text(max_size=5),
    ref=st.text(max_size=5),
)
