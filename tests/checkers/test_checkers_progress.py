"""How far an attempt had come, and what counts as done again."""

from __future__ import annotations

from chaoskit.checkers.progress import progress
from chaoskit.model.expectation import Expectation
from tests.checkers.builder import Story, charge, expecting, mail, teaches, undisturbed

ADA, BOB, EVE = charge("ada"), charge("bob"), charge("eve")
ALL = expecting(ADA, BOB, EVE)


def done(story: Story, expected: Expectation = ALL) -> list[tuple[int, str]]:
    """The attempt and the customer (or step) of everything complete."""
    return [
        (d.attempt, d.name if d.identity is None else dict(d.identity.fields)["customer"])
        for d in progress(story.history, expected).done
    ]


def again(story: Story, expected: Expectation = ALL) -> list[tuple[int, str]]:
    """The attempt and the customer (or step) of everything done again."""
    return [
        (w.attempt, w.name if w.identity is None else dict(w.identity.fields)["customer"])
        for w in (redo.again for redo in progress(story.history, expected).redone)
    ]


# Requests: complete once the answer was read and the next one came.


def test_an_answered_request_is_complete_once_its_successor_has_started() -> None:
    """The last answer may not have been read, so it proves nothing."""
    assert done(Story().starts().does(ADA, BOB, EVE)) == [(1, "ada"), (1, "bob")]


def test_a_request_that_is_only_received_proves_the_one_before_it() -> None:
    """To ask for the next thing is to have read the answer to the last."""
    assert done(Story().starts().does(ADA).asks(BOB)) == [(1, "ada")]


def test_a_look_is_no_successor_and_no_step() -> None:
    """A question may be part of the step before it."""
    story = Story().starts().looks("payments", "search").does(ADA).looks("payments", "search")
    assert done(story) == []


def test_the_first_request_of_the_next_attempt_is_no_successor() -> None:
    """What another attempt asks for does not show what this one had read."""
    story = Story().starts().does(ADA).killed("payments.charge#1.answered").starts().does(BOB)
    assert done(story) == []


def test_a_request_that_failed_or_whose_answer_was_lost_is_not_complete() -> None:
    """Neither tells the task that it is done."""
    assert done(Story().starts().fails(ADA).does(BOB)) == []
    assert done(Story().starts().fails(ADA, 400).does(BOB)) == []
    assert done(Story().starts().loses(ADA).does(BOB)) == []


def test_a_deduped_answer_completes_a_request() -> None:
    """The task was told that it is done."""
    assert done(Story().starts().repeats(ADA).does(BOB)) == [(1, "ada")]


def test_without_a_fixed_order_no_request_is_complete() -> None:
    """Where requests overlap, a successor proves nothing, so nothing is ever redone."""
    expected = teaches(undisturbed(ADA, BOB, EVE), ordered=False)
    story = Story().starts().does(ADA, BOB).killed("payments.charge#2.answered").starts().does(ADA)
    assert done(story, expected) == []
    assert again(story, expected) == []


def test_a_request_that_was_sent_before_the_answer_completes_nothing() -> None:
    """Of some that are sent at once none is complete until a later one is sent."""
    assert done(Story().starts().at_once(ADA, BOB)) == []
    assert done(Story().starts().at_once(ADA, BOB).does(EVE)) == [(1, "ada"), (1, "bob")]
    killed = Story().starts().at_once(ADA, BOB).killed("payments.charge#2.answered").starts()
    assert again(killed.at_once(ADA, BOB)) == []


def test_what_an_undisturbed_run_sends_early_completes_nothing_in_any_trial() -> None:
    """Whether it was there in time is chance, on a busy machine too."""
    expected = teaches(Story().starts().at_once(ADA, BOB).does(EVE).ends())
    assert done(Story().starts().does(ADA, BOB), expected) == []
    assert done(Story().starts().does(ADA, BOB, EVE), expected) == [(1, "ada"), (1, "bob")]


# Requests: done again.


def test_a_complete_request_that_is_sent_again_is_a_redo() -> None:
    """Whether it was booked again or deduped."""
    for resume in (Story.does, Story.repeats):
        story = Story().starts().does(ADA, BOB).killed("payments.charge#2.answered").starts()
        assert again(resume(story, ADA)) == [(2, "ada")]


def test_a_repeat_within_one_attempt_is_no_redo() -> None:
    """A retry belongs to the step that is running."""
    assert again(Story().starts().does(ADA, BOB, ADA, EVE)) == []


def test_the_second_of_two_identical_requests_may_be_resent() -> None:
    """A kill at the second of two identical charges: the first was complete, one is left."""
    expected = expecting(ADA, ADA, BOB)
    story = (
        Story()
        .starts()
        .does(ADA)
        .applies(ADA)
        .killed("payments.charge#2.applied")
        .starts()
        .repeats(ADA)
        .does(BOB)
        .ends()
    )
    assert done(story, expected) == [(1, "ada"), (2, "ada")]
    assert again(story, expected) == []


def test_the_first_of_two_identical_requests_may_not_be_resent_with_the_second() -> None:
    """The first was complete and one was left; the resume asks for two."""
    expected = expecting(ADA, ADA, BOB)
    story = (
        Story()
        .starts()
        .does(ADA)
        .applies(ADA)
        .killed("payments.charge#2.applied")
        .starts()
        .does(ADA, ADA, BOB)
        .ends()
    )
    assert again(story, expected) == [(2, "ada")]


def test_what_a_resume_completed_may_not_be_done_again_by_the_next_one() -> None:
    """Completed work of all earlier attempts counts, not of the first one alone."""
    story = (
        Story()
        .starts()
        .asks(ADA)
        .killed("payments.charge#1.received")
        .starts()
        .does(ADA, BOB)
        .killed("payments.charge#2.answered")
        .starts()
        .does(ADA, BOB, EVE)
        .ends()
    )
    assert again(story) == [(3, "ada")]


def test_requests_of_another_operation_are_other_steps() -> None:
    """A mail to the customer who was charged is no second charge."""
    expected = expecting(ADA, mail("ada"), BOB)
    story = (
        Story()
        .starts()
        .does(ADA)
        .asks(mail("ada"))
        .killed("email.send#1.received")
        .starts()
        .does(mail("ada"), BOB)
        .ends()
    )
    assert again(story, expected) == []


# Steps that the task reports.


def test_reported_steps_are_the_measure_where_there_are_any() -> None:
    """The runtime knows better than its requests what a step is."""
    story = (
        Story()
        .starts()
        .step("all", "started")
        .does(ADA, BOB)
        .killed("payments.charge#2.answered")
        .starts()
        .step("all", "started")
        .does(ADA, BOB, EVE)
        .step("all", "recorded")
        .ends()
    )
    assert again(story) == []
    assert done(story) == [(2, "all")]


def test_a_step_without_records_is_complete_once_its_successor_has_started() -> None:
    """Where a task reports starts alone, the next step's start completes the one before it."""
    story = (
        Story()
        .starts()
        .step("one", "started")
        .step("two", "started")
        .killed("9ms")
        .starts()
        .step("one", "started")
        .step("two", "started")
        .ends()
    )
    assert done(story) == [(1, "one"), (2, "one")]
    assert again(story) == [(2, "one")]


def test_a_step_is_not_its_own_successor() -> None:
    """A step that is reported twice has not been left in between."""
    story = Story().starts().step("one", "started").step("one", "started").killed("9ms").starts()
    assert done(story.step("one", "started").ends()) == []
    assert again(story) == []


def test_where_records_are_reported_a_successor_alone_completes_nothing() -> None:
    """Steps that run side by side start before each other's record."""
    story = (
        Story()
        .starts()
        .step("one", "started")
        .step("two", "started", "recorded")
        .killed("9ms")
        .starts()
        .step("one", "started", "recorded")
        .ends()
    )
    assert done(story) == [(1, "two"), (2, "one")]
    assert again(story) == []
