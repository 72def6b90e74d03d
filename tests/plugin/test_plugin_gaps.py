"""Known gaps: what is expected, what is new, what is gone, as pure values."""

from __future__ import annotations

from itertools import starmap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.actions import Kill, Stop
from chaoskit.model.errors import UsageError
from chaoskit.model.findings import FINDING_KINDS
from chaoskit.model.points import CallPoint, WindowPoint
from chaoskit.pytest_plugin.extent import Extent, Way
from chaoskit.pytest_plugin.gaps import Known, known_from, sort_out
from chaoskit.reporting.summary import ReportedFinding

KINDS = st.sampled_from(["duplicate_effect", "lost_effect", "redone_step", "stuck"])
OPERATIONS = st.sampled_from(["payments.charge", "payments.refund", "email.send", "a[1]"])
PATTERNS = st.sampled_from(["", "@*", "@payments.*", "@payments.charge", "@email.send"])


def finding(kind: str, operation: str, schedule: str = "kill@a#1") -> ReportedFinding:
    """One finding of one trial."""
    return ReportedFinding(
        kind=kind,
        point="a#1",
        schedule=schedule,
        operation=operation,
        subject="s",
        expected="e",
        seen="s",
        because="b",
        diagnosis=None,
        consequences=(),
        fingerprint="f",
        replay="chaoskit replay ck1-x",
    )


FINDINGS = st.lists(st.builds(finding, KINDS, OPERATIONS), max_size=8)
KNOWN = st.lists(st.tuples(KINDS, PATTERNS), max_size=4, unique=True).map(
    lambda names: tuple(Known(kind + pattern, "ticket") for kind, pattern in names)
)


@given(FINDINGS, KNOWN, st.booleans())
def test_everything_that_is_found_or_known_is_told_once(
    findings: list[ReportedFinding], known: tuple[Known, ...], tried: bool
) -> None:
    """Each finding is in one group, which is known exactly if a gap explains it; each gap that
    explains none is gone where it was looked for, and unseen where not.
    """
    held = sort_out(findings, known, lambda _: tried)
    told = [finding for one in held.found for finding in one.findings]
    assert sorted(map(id, told)) == sorted(map(id, findings))
    for one in held.found:
        explained = [any(gap.explains(f) for gap in known) for f in one.findings]
        assert set(explained) == {one.known is not None}
    missing = [gap for gap in known if not any(map(gap.explains, findings))]
    assert list(held.gone if tried else held.unseen) == missing
    assert not (held.unseen if tried else held.gone)


@pytest.mark.parametrize(
    ("named", "meant"),
    [
        ("duplicate_effect@payments.chrage", "duplicate_effect@payments.charge"),
        ("duplicate_effect@email.*.all", "duplicate_effect@email.send"),
        ("lost_effect@payments.charge", ""),
        ("duplicate_effect@nothing", "duplicate_effect@payments.refund"),
    ],
)
def test_a_gap_that_is_gone_may_be_a_misspelt_one(named: str, meant: str) -> None:
    """What is new, of the same kind and of the nearest name, is what may have been meant; never
    what another gap explains.
    """
    operations = ("email.send", "payments.charge", "payments.refund")
    findings = [finding("duplicate_effect", operation) for operation in operations]
    others: tuple[Known, ...] = () if meant else (Known("duplicate_effect", "ticket"),)
    if "nothing" in named:
        others = (
            Known("duplicate_effect@email.*", "ticket"),
            Known("duplicate_effect@payments.charge", "ticket"),
        )
    held = sort_out(findings, (Known(named, "ticket"), *others), lambda _: True)
    assert [gap.name for gap in held.gone] == [named]
    assert held.instead_of(held.gone[0]) == meant


def test_what_a_baseline_names_is_itself_and_no_pattern() -> None:
    """A recorded name with brackets or stars is that operation; a person's name is a pattern."""
    found = [finding("duplicate_effect", "a[1]"), finding("duplicate_effect", "a1")]
    recorded = Known("duplicate_effect@a[1]", "r", recorded=True)
    assert [recorded.explains(f) for f in found] == [True, False]
    written = Known("duplicate_effect@a[1]", "r")
    assert [written.explains(f) for f in found] == [False, True]


def test_steps_that_are_run_again_are_one_gap() -> None:
    """A baseline names them once, whichever steps they are; a marker may name one of them."""
    found = [finding("redone_step", "charge 1"), finding("redone_step", "charge 2")]
    (one,) = sort_out(found, (), lambda _: True).found
    assert one.name == "redone_step"
    recorded = Known(one.name, "r", recorded=True)
    assert sort_out(found, [recorded], lambda _: True).new == ()
    (new,) = sort_out(found, [Known("redone_step@charge 1", "r")], lambda _: True).new
    assert new.findings == (found[1],)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"duplicate_efect@payments.charge": "t"}, "nearest: duplicate_effect"),
        ({"stuck": ""}, "a reason for each finding"),
        ({"stuck": None}, "a reason for each finding"),
        ({7: "t"}, "known names findings"),
        (["stuck"], "a mapping from findings to reasons"),
    ],
)
def test_what_is_no_known_gap_is_refused_with_an_example(given: object, said: str) -> None:
    """Each mistake names what would be right."""
    with pytest.raises(UsageError, match=said):
        known_from(given)


def test_every_kind_of_finding_can_be_known() -> None:
    """With and without an operation."""
    for kind in FINDING_KINDS:
        names = [kind, f"{kind}@payments.*"]
        assert [gap.name for gap in known_from(dict.fromkeys(names, "why"))] == names


KILL = (Kill(), WindowPoint)
WHOLE = Extent((), frozenset({"kill@payments.charge#1.applied"}), frozenset({KILL}), 1)
SAMPLE = Extent(("a sample",), WHOLE.landed, WHOLE.tried, 1)


@pytest.mark.parametrize(
    ("extent", "shown_at", "could"),
    [
        (WHOLE, (), True),
        (SAMPLE, (), False),
        (WHOLE, ("kill@payments.charge#1.applied",), True),
        (SAMPLE, ("kill@payments.charge#1.applied",), True),
        (SAMPLE, ("kill@payments.charge#2.applied",), False),
        (WHOLE, ("kill@payments.charge#9.applied",), True),
        (WHOLE, ("kill@open(charged)#1",), False),
        (WHOLE, ("late:1@payments.charge#1.received",), False),
        (WHOLE, ("kill@payments.charge#1.applied / kill@email.send#1.applied",), False),
        (WHOLE, ("kill@open(charged)#1", "kill@payments.charge#9.applied"), True),
        (WHOLE, ("of another version",), False),
    ],
)
def test_a_gap_is_gone_only_where_it_was_looked_for(
    extent: Extent, shown_at: tuple[str, ...], could: bool
) -> None:
    """A trial that showed it was run again, or all was tried of what those trials did: neither
    other points, nor other faults, nor fewer kills, nor a sample.
    """
    assert extent.could_show(Known("stuck", "r", shown_at, recorded=bool(shown_at))) is could


def test_of_faults_that_are_not_done_everywhere_only_the_same_trial_says_something() -> None:
    """Six stops at other points than before are no proof; the very same stop is."""
    stops: frozenset[Way] = frozenset({(Stop("stop", 500), CallPoint), KILL})
    extent = Extent((), frozenset({"stop:500ms@open(a)#1"}), stops, 1)
    answers = starmap(
        Known,
        [("stuck", "r", ("stop:500ms@open(a)#1",)), ("stuck", "r", ("stop:500ms@open(b)#1",))],
    )
    assert [extent.could_show(gap) for gap in answers] == [True, False]
