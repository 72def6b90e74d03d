"""Any value of the model, for properties that hold for all of them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from chaoskit.model.actions import LATE, POWER, Kill, KillLeader, Pause, Stop, Twin
from chaoskit.model.behaviours import KINDS, Behaviour
from chaoskit.model.contract import GUARANTEES, Contract
from chaoskit.model.effects import Effect, Fields
from chaoskit.model.points import (
    WINDOWS,
    CallPoint,
    CrossingPoint,
    Point,
    TimePoint,
    WindowPoint,
)
from chaoskit.model.preludes import HOWS, Changed, Clock, Damage, Prelude, Resumers
from chaoskit.model.schedule import Fault, Schedule, before
from chaoskit.model.secrets import is_secret_name

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

WHOS = st.lists(st.builds("p{}".format, st.integers(1, 10**9 - 1)), max_size=3).map(".".join)
"""Processes by order of birth; empty for the first one."""

CALLS = st.builds(
    str.__add__,
    st.sampled_from("abcdefghijklmnopqrstuvwxyz"),
    st.text("abcdefghijklmnopqrstuvwxyz0123456789_", max_size=10),
)

FILES = st.text(WORD + ".,:=@~*/%>-", max_size=16)

CALL_POINTS = st.builds(
    CallPoint, CALLS, FILES, ORDINALS, st.sampled_from(["before", "after"]), st.just(0), WHOS
) | st.builds(CallPoint, CALLS, FILES, ORDINALS, st.just("short"), DELAYS, WHOS)

POINTS: st.SearchStrategy[Point] = (
    st.builds(WindowPoint, SERVICES, NAMES, ORDINALS, st.sampled_from(WINDOWS))
    | st.builds(CrossingPoint, NAMES, ORDINALS)
    | st.builds(TimePoint, DELAYS)
    | CALL_POINTS
)

_AMOUNTS: dict[str, st.SearchStrategy[int | None]] = {
    "late-reply": DELAYS,
    "commit-late": st.none() | ORDINALS,
    "down": st.none() | ORDINALS,
    "lag": ORDINALS,
    "reject": st.integers(400, 599),
}

PATTERNED = NAMES | st.builds("{}*{}".format, st.just("") | NAMES, st.just("") | NAMES)
"""Operations of behaviours, in which a * stands for any text."""

BEHAVIOURS = st.sampled_from(KINDS).flatmap(
    lambda kind: st.builds(
        Behaviour,
        st.just(kind),
        SERVICES,
        PATTERNED,
        st.none() | ORDINALS,
        _AMOUNTS.get(kind, st.just(0)),
    )
)

CLOCKS = st.builds(Clock, st.integers(1, 9999), st.sampled_from("smhd"))

GLOBS = st.lists(st.text(WORD + "*?[]-.,:=~", min_size=1, max_size=8), min_size=1, max_size=3).map(
    "/".join
)

DAMAGES = st.builds(
    Damage,
    st.sampled_from(HOWS),
    GLOBS.filter(lambda files: ".." not in files.split("/")),
)

PRELUDES: st.SearchStrategy[Prelude] = (
    CLOCKS
    | DAMAGES
    | st.builds(Changed, NAMES)
    | st.builds(Resumers, st.integers(2, 99))
    | BEHAVIOURS
)

STOPS = st.builds(Stop, st.sampled_from(["stop", "interrupt"]), DELAYS)

NO_CALLS = POINTS.filter(lambda point: not isinstance(point, CallPoint))

FAULTS: st.SearchStrategy[Fault] = (
    st.builds(Fault, st.sampled_from([Kill(), KillLeader()]) | STOPS, POINTS)
    | st.builds(Fault, st.sampled_from([Pause(), Twin()]), NO_CALLS)
    | st.builds(
        Fault,
        st.sampled_from([*LATE.values()]),
        st.builds(WindowPoint, SERVICES, NAMES, ORDINALS, st.just("received")),
    )
    | st.builds(
        Fault,
        st.sampled_from(POWER),
        CALL_POINTS.map(lambda point: replace(point, side="after", bytes=0)),
    )
    | PRELUDES.map(str).map(before)
)
"""All that can be done: only a received request lands late, power is lost after a call, a second
runner is not started at one, and what is done before an attempt has no point.
"""

SCHEDULES = st.builds(
    Schedule,
    st.lists(st.lists(FAULTS, max_size=3).map(tuple), max_size=4).map(tuple),
)

PATTERNS = st.text(WORD + ".*?[]!-", min_size=1, max_size=12)

CONTRACTS = st.builds(
    Contract,
    st.lists(st.tuples(PATTERNS, st.sampled_from(GUARANTEES)), max_size=4).map(tuple),
)

PLAIN_NAMES = st.text(max_size=5).filter(lambda name: not is_secret_name(name))

JSON_MAPPINGS = st.dictionaries(
    PLAIN_NAMES,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PLAIN_NAMES, inner, max_size=3),
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
