"""Rows that are taken and freed again are no effects, and everything else is one."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from chaoskit.explore.survey import expect
from chaoskit.model.effects import Effect, flatten
from chaoskit.model.expectation import Expectation, Freed
from chaoskit.model.scenario import Scenario
from tests.checkers.builder import Story, charge, judged

ADA = charge("ada")


def row(kind: str, ref: str = "nightly", service: str = "database", **fields: object) -> Effect:
    """A change of a row; ``was`` are the old values of changed columns."""
    return Effect(
        service=service, kind=kind, fields=flatten({"name": ref, **fields}), who=ref, ref=ref
    )


def update(owner: str, was: str, at: str = "", ref: str = "nightly") -> Effect:
    """A change of a lease's owner, and of the time that stands in it."""
    old = {"owner": was} | ({"at": f"before {at}"} if at else {})
    return row("leases.update", ref, owner=owner, at=at, was=old)


TAKE, FREE = row("locks.insert", owner="1"), row("locks.delete", owner="1")
LEASE = (update("1", "", "8:00"), update("", "1", "8:01"))


def surveyed(one: Story, two: Story, **settings: object) -> Expectation:
    """What two undisturbed runs teach."""
    scenario = Scenario(command=("task",), **settings)  # type: ignore[arg-type]
    return expect(one.history, two.history, scenario)


def run(*rows: Effect) -> Story:
    """An undisturbed run that charges between the first of these and the others."""
    return Story().starts().does(ADA).books(*rows).ends()


@pytest.mark.parametrize(
    ("first", "second", "freed"),
    [
        ((TAKE, FREE), (TAKE, FREE), [Freed(table="locks")]),
        ((TAKE, FREE), (TAKE, FREE, TAKE, FREE), [Freed(table="locks")]),
        (
            (row("locks.insert", "a1"), row("locks.delete", "a1")),
            (row("locks.insert", "b2"), row("locks.delete", "b2")),
            [Freed(table="locks")],
        ),
        (
            LEASE,
            (update("2", "", "9:00"), update("2", "2", "9:01"), update("", "2", "9:02")),
            [Freed(table="leases", ref="nightly", back=(("owner", ""),))],
        ),
        ((TAKE,), (TAKE,), []),
        ((FREE, TAKE), (FREE, TAKE), []),
        ((TAKE, FREE, row("locks.insert", "b")), (TAKE, FREE, row("locks.insert", "b")), []),
        ((update("1", ""), update("2", "1")), (update("1", ""), update("2", "1")), []),
        (
            (update("1", "", "8:00"), update("", "1", "8:01")),
            (update("1", "", "8:00"), update("", "1", "8:01")),
            [],
        ),
        (
            (row("x.insert", service="other"), row("x.delete", service="other")),
            (row("x.insert", service="other"), row("x.delete", service="other")),
            [],
        ),
    ],
    ids=[
        "lock",
        "as-often-as-it-likes",
        "a-row-of-its-own",
        "lease",
        "never-freed",
        "deleted-and-loaded-anew",
        "one-row-stays",
        "goes-on",
        "a-column-stays-changed",
        "no-database",
    ],
)
def test_a_row_is_known_by_its_undoing(
    first: tuple[Effect, ...], second: tuple[Effect, ...], freed: list[Freed]
) -> None:
    """Inserted and then deleted, or set back to what it was; in each undisturbed run."""
    found = surveyed(run(*first), run(*second))
    assert [*found.freed] == freed
    if freed:
        assert found.problems == ()
        assert [identity.operation for identity in found.order] == ["payments.charge"]


@pytest.mark.parametrize(
    "said",
    [{"contract": {"database.locks.*": "exactly-once"}}, {"expect": {"database.locks.insert": 1}}],
)
def test_what_somebody_declares_is_judged(said: Mapping[str, object]) -> None:
    """A rule or a number for these rows says that they matter."""
    found = surveyed(run(TAKE, FREE), run(TAKE, FREE), services=("database",), **said)
    assert found.freed == ()
    assert len(found.order) == 3


def resumed(before: tuple[Effect, ...], after: tuple[Effect, ...]) -> Story:
    """A task that was killed after these changes, and makes the others when it is resumed."""
    story = Story().starts().does(ADA).books(*before).killed("5ms").starts()
    return story.books(*after).ends()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((TAKE,), (row("locks.update", owner="2", was={"owner": "1"}), FREE)),
        ((TAKE, FREE), (TAKE, FREE)),
        ((TAKE,), ()),
        ((row("locks.insert", "a1"),), (row("locks.insert", "b2"), row("locks.delete", "b2"))),
    ],
    ids=["taken-over", "again", "left-to-expire", "another-row"],
)
def test_to_take_a_lock_again_is_no_duplicate(
    before: tuple[Effect, ...], after: tuple[Effect, ...]
) -> None:
    """However often, by whichever attempt, and in whichever row."""
    expected = surveyed(run(TAKE, FREE), run(TAKE, FREE))
    judgement = judged(resumed(before, after), expected)
    assert (judgement.verdict, judgement.findings) == ("VALID", ())


def test_a_success_that_frees_nothing_loses_that() -> None:
    """The attempt that took the row ended with success, and never freed it."""
    expected = surveyed(run(TAKE, FREE), run(TAKE, FREE))
    [found] = judged(resumed((), (TAKE,)), expected).findings
    assert (found.kind, found.seen) == ("lost_effect", "still taken")
    assert found.diagnosis is not None
    assert found.diagnosis.evidence == "attempt 2 changed it last, and ended with success"
    lease = surveyed(run(*LEASE), run(update("2", "", "9:00"), update("", "2", "9:01")))
    [found] = judged(resumed((), (update("3", "", "9:05"),)), lease).findings
    assert (found.kind, found.operation) == ("lost_effect", "database.leases.update")


def test_a_refund_is_judged_although_it_undoes_a_charge() -> None:
    """What is undone at a payment provider has happened twice all the same; so has a row beside the
    lock.
    """
    refund = Effect(service="payments", kind="refund", fields=ADA.fields, who="ada", ref="ref")
    sale = row("sales.insert", "ada")
    story = Story().starts().does(ADA, refund).books(TAKE, sale, FREE).ends()
    expected = surveyed(story, story)
    again = Story().starts().does(ADA, refund).books(TAKE, sale).killed("5ms").starts()
    found = judged(again.does(refund).books(TAKE, sale, FREE).ends(), expected).findings
    assert sorted(one.operation for one in found if one.kind == "duplicate_effect") == [
        "database.sales.insert",
        "payments.refund",
    ]
