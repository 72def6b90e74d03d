"""The world's books against the contract: what happened twice, never, or with other values."""

from __future__ import annotations

import msgspec
import pytest

from chaoskit.checkers.effects import duplicate_effect, false_success, lost_effect, wrong_inputs
from chaoskit.model.effects import Effect
from tests.checkers.builder import (
    Story,
    charge,
    expecting,
    judged,
    mail,
    row,
    teaches,
    undisturbed,
)

ADA, BOB, EVE = charge("ada"), charge("bob"), charge("eve")

CAREFUL = (
    Story()
    .starts()
    .does(ADA, BOB)
    .killed("payments.charge#2.answered")
    .starts()
    .does(EVE)
    .ends()
    .history
)
"""Three charges, a kill after the second, and a resume that goes on."""


# duplicate_effect


def test_each_effect_once_is_no_duplicate() -> None:
    """A resume that goes on where the task was killed repeats nothing."""
    assert not list(duplicate_effect(CAREFUL, expecting(ADA, BOB, EVE)))


def test_an_effect_of_two_attempts_is_a_duplicate() -> None:
    """A charge that the resume does again is found, with both events as its witness."""
    story = (
        Story()
        .starts()
        .does(ADA)
        .applies(BOB)
        .killed("payments.charge#2.applied")
        .starts()
        .does(BOB, EVE)
        .ends()
    )
    [found] = duplicate_effect(story.history, expecting(ADA, BOB, EVE))
    assert (found.kind, found.operation) == ("duplicate_effect", "payments.charge")
    assert found.subject == "amount=100|customer=bob"
    assert found.expected == "charge of 100 to bob: once"
    assert found.seen == "twice"
    assert found.because == "attempts 1 and 2 each did it; without an idempotency key"
    assert [story.history.events[i].body for i in found.witness] == [
        body for _, body in story.history.effects if body.effect == BOB
    ]


def test_two_legitimate_identical_effects_are_no_duplicate() -> None:
    """What an undisturbed run does twice may happen twice, before and after a kill."""
    story = (
        Story().starts().does(ADA).killed("payments.charge#1.answered").starts().does(ADA).ends()
    )
    assert not list(duplicate_effect(story.history, expecting(ADA, ADA)))


def test_a_third_identical_effect_is_a_duplicate() -> None:
    """Identical effects are counted: two are legitimate, the third is not."""
    story = (
        Story()
        .starts()
        .does(ADA, ADA)
        .killed("payments.charge#2.answered")
        .starts()
        .does(ADA)
        .ends()
    )
    [found] = duplicate_effect(story.history, expecting(ADA, ADA))
    assert (found.expected, found.seen) == ("charge of 100 to ada: twice", "3 times")
    assert len(found.witness) == 3


def test_a_deduped_request_is_no_duplicate_effect() -> None:
    """A repeat that the service recognised changed nothing in the world."""
    keyed = charge("ada", key="k1")
    story = (
        Story()
        .starts()
        .applies(keyed)
        .killed("payments.charge#1.applied")
        .starts()
        .repeats(keyed)
        .ends()
    )
    assert not list(duplicate_effect(story.history, expecting(keyed)))


@pytest.mark.parametrize(
    ("guarantee", "duplicates"), [("exactly-once", 1), ("at-most-once", 1), ("at-least-once", 0)]
)
def test_the_contract_decides_whether_twice_is_wrong(guarantee: str, duplicates: int) -> None:
    """At least once allows a duplicate; exactly once and at most once do not."""
    story = (
        Story().starts().does(ADA).killed("payments.charge#1.answered").starts().does(ADA).ends()
    )
    expected = expecting(ADA, contract={"payments.*": guarantee})
    assert len(list(duplicate_effect(story.history, expected))) == duplicates


def test_a_duplicate_is_told_whatever_the_end_was() -> None:
    """A task that failed after doing something twice has done it twice all the same."""
    story = (
        Story().starts().does(ADA).killed("payments.charge#1.answered").starts().does(ADA).ends(1)
    )
    assert len(list(duplicate_effect(story.history, expecting(ADA, BOB)))) == 1


def test_one_attempt_alone_can_do_it_twice() -> None:
    """A retry inside one attempt is told as such."""
    story = Story().starts().loses(ADA).does(ADA).ends()
    [found] = duplicate_effect(story.history, expecting(ADA))
    assert found.because == "attempt 1 did it twice; without an idempotency key"


def test_the_keys_of_a_duplicate_are_told() -> None:
    """Different keys, the same key, or none where there cannot be one."""

    def because(*twice: str | None) -> str:
        one, two = (charge("ada", key=key) for key in twice)
        story = Story().starts().does(one).killed("payments.charge#1.answered").starts().does(two)
        [found] = duplicate_effect(story.ends().history, expecting(one))
        return found.because.partition("; ")[2]

    assert because("k1", "k2") == "with the keys k1 and k2"
    assert because("k1", "k1") == "each with the same key k1"
    assert because("k1", None) == "with the keys k1 and (none)"
    book = Story().starts().books(row("ada")).killed("5ms").starts().books(row("ada")).ends()
    [found] = duplicate_effect(book.history, teaches(Story().starts().books(row("ada")).ends()))
    assert found.because == "attempts 1 and 2 each did it"


def test_volatile_fields_do_not_make_another_effect() -> None:
    """Two charges that differ in a time alone are the same business fact."""
    first, again = charge("ada", at="10:00"), charge("ada", at="10:01")
    story = (
        Story()
        .starts()
        .does(first)
        .killed("payments.charge#1.answered")
        .starts()
        .does(again)
        .ends()
    )
    expected = teaches(undisturbed(first), volatile={"payments.charge": ["at"]})
    assert [found.seen for found in duplicate_effect(story.history, expected)] == ["twice"]
    assert not list(wrong_inputs(story.history, expected))


# lost_effect


def test_each_effect_once_is_no_loss() -> None:
    """Everything that an undisturbed run does was done."""
    assert not list(lost_effect(CAREFUL, expecting(ADA, BOB, EVE)))


def test_an_effect_that_the_resume_goes_past_is_lost() -> None:
    """A charge that neither attempt did is found once the task claims success."""
    story = (
        Story()
        .starts()
        .does(ADA)
        .asks(BOB)
        .killed("payments.charge#2.received")
        .starts()
        .does(EVE)
        .ends()
    )
    [found] = lost_effect(story.history, expecting(ADA, BOB, EVE))
    assert (found.kind, found.operation) == ("lost_effect", "payments.charge")
    assert found.expected == "charge of 100 to bob: once"
    assert found.seen == "never"
    assert found.because == "attempt 2 ended with success and went past it"
    assert found.witness == (story.history.attempts[-1][0],)


def test_the_second_of_two_identical_effects_can_be_lost() -> None:
    """One of two is not enough, and the witness names the one that there is."""
    story = (
        Story().starts().does(ADA).killed("payments.charge#1.answered").starts().does(BOB).ends()
    )
    [found] = lost_effect(story.history, expecting(ADA, ADA, BOB))
    assert (found.expected, found.seen) == ("charge of 100 to ada: twice", "once")
    assert found.witness == (story.history.effects[0][0], story.history.attempts[-1][0])


@pytest.mark.parametrize(
    ("guarantee", "losses"), [("exactly-once", 1), ("at-least-once", 1), ("at-most-once", 0)]
)
def test_the_contract_decides_whether_never_is_wrong(guarantee: str, losses: int) -> None:
    """At most once allows a loss; exactly once and at least once do not."""
    story = (
        Story().starts().asks(ADA).killed("payments.charge#1.received").starts().does(BOB).ends()
    )
    expected = expecting(ADA, BOB, contract={"payments.*": guarantee})
    assert len(list(lost_effect(story.history, expected))) == losses


def interrupted() -> Story:
    """A task of which two charges are still to be done, and whose resume begins."""
    return Story().starts().asks(ADA).killed("payments.charge#1.received").starts().does(BOB)


@pytest.mark.parametrize(
    "story",
    [
        interrupted().states("refused", "the inputs differ").ends(1),
        interrupted().states("unknown", "no answer", step="charge/1").ends(3),
        interrupted().ends(1),
        interrupted().ends(11, how="signal"),
        interrupted().ends(9, how="timeout"),
    ],
    ids=["refused", "unknown", "failed", "signal", "timeout"],
)
def test_nothing_is_lost_where_no_success_is_claimed(story: Story) -> None:
    """A task that says that it did not finish keeps its promise."""
    expected = expecting(ADA, BOB, EVE)
    assert not list(lost_effect(story.history, expected))
    assert not list(false_success(story.history, expected))


# false_success


def test_a_success_with_everything_done_is_true() -> None:
    """The end of the work is there."""
    assert not list(false_success(CAREFUL, expecting(ADA, BOB, EVE)))


def test_a_success_without_the_end_of_the_work_is_false() -> None:
    """All charges are done, and the mails that close the run never went out: one finding."""
    closing = [mail("owner"), mail("tax office")]
    story = Story().starts().does(ADA, BOB).killed("payments.charge#2.answered").starts().ends()
    expected = expecting(ADA, BOB, *closing)
    [found] = false_success(story.history, expected)
    assert (found.kind, found.operation) == ("false_success", "email.send")
    assert found.expected == "mail to owner: once and 1 more effect after it"
    assert found.seen == "never"
    assert found.because == "attempt 2 ended with success before the end was done"
    assert found.witness == (story.history.attempts[-1][0],)
    assert not list(lost_effect(story.history, expected))


def test_a_last_effect_is_lost_like_any_other_where_records_come_first() -> None:
    """Where an undisturbed run shows it, or where there is one effect only."""
    story = Story().starts().does(ADA).asks(BOB).killed("payments.charge#2.received").starts()
    story.ends()
    expected = expecting(ADA, BOB)
    assert len(list(false_success(story.history, expected))) == 1
    first = msgspec.structs.replace(expected, record_first=True)
    assert not list(false_success(story.history, first))
    assert [f.subject for f in lost_effect(story.history, first)] == ["amount=100|customer=bob"]
    alone = Story().starts().asks(ADA).killed("payments.charge#1.received").starts().ends()
    assert not list(false_success(alone.history, expecting(ADA)))
    assert len(list(lost_effect(alone.history, expecting(ADA)))) == 1


def test_a_loss_with_something_after_it_is_no_false_success() -> None:
    """The end was done; what is missing lies before it."""
    story = (
        Story().starts().asks(ADA).killed("payments.charge#1.received").starts().does(BOB).ends()
    )
    expected = expecting(ADA, BOB)
    assert not list(false_success(story.history, expected))
    assert len(list(lost_effect(story.history, expected))) == 1


def test_without_a_fixed_order_nothing_is_the_end() -> None:
    """Where effects come in any order, what is missing at the end is a loss like any other."""
    story = Story().starts().does(ADA).killed("payments.charge#1.answered").starts().ends()
    expected = teaches(undisturbed(ADA, BOB), ordered=False)
    assert not list(false_success(story.history, expected))
    assert len(list(lost_effect(story.history, expected))) == 1


def test_what_no_request_carries_has_an_end_of_its_own() -> None:
    """Rows are booked when an attempt is over, so they say nothing of the place of a request."""
    survey = Story().starts().does(ADA, BOB).books(row("ada"), row("bob")).ends()
    rows_missing = (
        Story().starts().does(ADA).killed("payments.charge#1.answered").starts().does(BOB)
    )
    rows_missing.books(row("ada")).ends()
    [found] = false_success(rows_missing.history, teaches(survey))
    assert found.expected == "row to bob: once"
    charge_missing = Story().starts().does(ADA).killed("payments.charge#1.answered").starts()
    charge_missing.books(row("ada"), row("bob")).ends()
    [found] = false_success(charge_missing.history, teaches(survey))
    assert found.expected == "charge of 100 to bob: once"


# wrong_inputs


def test_the_values_of_an_undisturbed_run_are_right() -> None:
    """Nothing happened that an undisturbed run does not do."""
    assert not list(wrong_inputs(CAREFUL, expecting(ADA, BOB, EVE)))


def test_values_that_no_undisturbed_run_has_are_wrong() -> None:
    """A mail with another text is one finding, and the mail that it stands for is not lost too."""
    story = (
        Story()
        .starts()
        .does(mail("ada", "you owe 7"))
        .killed("email.send#1.answered")
        .starts()
        .does(mail("bob", "you owe None"))
        .ends()
    )
    expected = expecting(mail("ada", "you owe 7"), mail("bob", "you owe 8"))
    [found] = wrong_inputs(story.history, expected)
    assert (found.kind, found.operation) == ("wrong_inputs", "email.send")
    assert (found.expected, found.seen) == ("mail to bob: never", "once")
    assert found.because == (
        "attempt 2 did it; it is like 'mail to bob', but text is 'you owe None', not 'you owe 8'"
    )
    assert found.witness == (story.history.effects[-1][0],)
    assert not list(lost_effect(story.history, expected))
    assert not list(false_success(story.history, expected))


def test_an_operation_that_no_undisturbed_run_has_is_wrong() -> None:
    """There is nothing that it could be like."""
    story = Story().starts().does(ADA, mail("ada")).ends()
    [found] = wrong_inputs(story.history, expecting(ADA))
    assert found.because == "attempt 1 did it; no undisturbed run has any email.send"


def test_an_effect_at_another_service_is_named_by_where_it_belongs() -> None:
    """A charge by the other instance is compared with itself, and not with somebody else's."""
    elsewhere = msgspec.structs.replace(BOB, service="us")
    story = Story().starts().does(ADA, BOB, elsewhere).ends()
    known = expecting(ADA, BOB, msgspec.structs.replace(EVE, service="us"))
    [found] = wrong_inputs(story.history, known)
    assert (found.operation, found.expected) == ("us.charge", "charge of 100 to bob: never")
    assert found.because == "attempt 1 did it; an undisturbed run does it as payments.charge"


def test_values_are_wrong_whatever_the_contract_and_the_end() -> None:
    """No guarantee is about effects that nobody asked for, and no end excuses them."""
    story = Story().starts().does(charge("ada", 999)).states("refused", "too much").ends(1)
    expected = expecting(ADA, contract={"*": "at-least-once"})
    assert [found.seen for found in wrong_inputs(story.history, expected)] == ["once"]


def test_a_search_may_draw_others_and_none_twice_and_not_fewer() -> None:
    """`never-twice`: which effects there are is open; how many there are is not."""
    one, two, three = charge("ada"), charge("bob"), charge("eve")
    known = expecting(one, two, contract={"payments.*": "never-twice"})

    def kinds(*effects: Effect) -> list[str]:
        story = Story().starts().does(one).killed("payments.charge#1.answered")
        return [f.kind for f in judged(story.starts().does(*effects).ends(), known).findings]

    assert kinds(three) == []
    assert kinds(three, three) == ["duplicate_effect"]
    assert "duplicate_effect" in kinds(one)
    assert kinds() == ["lost_effect"]
