"""Finished work that was done again, and tasks that started over."""

from __future__ import annotations

from copy import deepcopy

import pytest

from chaoskit.checkers.diagnosis import OLDER_COPY
from chaoskit.checkers.effects import duplicate_effect
from chaoskit.checkers.steps import redone_step, silent_restart
from chaoskit.model.effects import Effect
from tests.checkers.builder import Story, charge, expecting, judged, teaches, undisturbed

ADA, BOB, EVE, KIM = (charge(who, key=f"k-{who}") for who in ("ada", "bob", "eve", "kim"))
ALL = expecting(ADA, BOB, EVE, KIM)

STEPS = teaches(
    Story()
    .starts()
    .step("one", "started", "recorded")
    .step("two", "started", "recorded")
    .step("three", "started", "recorded")
    .ends()
)


# redone_step, and older copies

KILLED, STALE = "payments.charge#1.applied", "damage:stale:**/*"


def rolled_back(*again: Effect) -> Story:
    """Half is done; a resume does the rest and ends; a copy from before that resume is put back;
    the third attempt asks for ``again``.
    """
    story = Story().starts().does(ADA, BOB).killed(KILLED).starts().does(EVE, KIM).ends()
    return story.suffers(STALE).starts().repeats(*again).ends()


def test_what_an_older_copy_does_not_hold_may_be_done_again_with_keys() -> None:
    """The task cannot know it, and nothing happens twice."""
    judgement = judged(rolled_back(BOB, EVE, KIM), ALL)
    assert (judgement.verdict, judgement.end) == ("VALID", "completed")


def test_what_an_older_copy_holds_may_not_be_done_again() -> None:
    """The first charge was complete before the copy was made: to begin there is a restart."""
    [found] = judged(rolled_back(ADA, BOB, EVE, KIM), ALL).findings
    assert found.kind == "silent_restart"


def test_what_happens_twice_after_an_older_copy_is_a_duplicate() -> None:
    """Without a key the service cannot tell, whatever the copy holds."""
    again = [charge(who) for who in ("ada", "bob", "eve", "kim")]
    story = Story().starts().does(*again).ends().suffers(STALE).starts().does(*again).ends()
    found = judged(story, expecting(*again)).findings
    assert {(f.kind, f.cause) for f in found} == {("duplicate_effect", "")}
    assert {f.diagnosis for f in found} == {OLDER_COPY}
    assert len(found) == 4


def test_of_two_that_are_alike_the_one_that_the_copy_holds_is_known() -> None:
    """Two identical purchases: one was complete before the copy, so one may be done again."""
    expectation = expecting(ADA, BOB, BOB, KIM)
    copy = Story().starts().does(ADA, BOB).asks(BOB).killed("payments.charge#3.received").starts()
    copy.does(BOB, KIM).ends().suffers(STALE).starts()
    once, twice = (deepcopy(copy).repeats(*[BOB] * n, KIM).ends() for n in (1, 2))
    assert not judged(once, expectation).findings
    assert [f.kind for f in judged(twice, expectation).findings] == ["redone_step"]


def test_what_was_done_again_after_an_older_copy_is_known_from_then_on() -> None:
    """A further resume finds the records of the third attempt, and begins nothing of it again."""
    story = Story().starts().does(ADA).killed(KILLED).starts().does(BOB, EVE, KIM).ends()
    story.suffers(STALE).starts().repeats(BOB, EVE, KIM).killed("payments.charge#3.answered")
    story.starts()
    good, bad = (deepcopy(story).repeats(*again).ends() for again in ((KIM,), (BOB, EVE, KIM)))
    assert not judged(good, ALL).findings
    assert {f.kind for f in judged(bad, ALL).findings} == {"redone_step"}


def test_what_was_done_beside_a_paused_attempt_is_not_in_a_copy_from_before_it() -> None:
    """The copy is from before the paused attempt began, so both have done their work since."""
    story = Story().starts().does(ADA).killed(KILLED).starts().does(BOB)
    story.suffers("pause@payments.charge#1.answered").starts().does(EVE).ends(1).wakes(2).ends(1)
    story.wakes(3).suffers(STALE).starts().repeats(BOB, EVE).does(KIM).ends()
    assert not judged(story, ALL).findings


@pytest.mark.parametrize(
    ("refuses", "verdict", "end"), [(True, "VALID", "refused"), (False, "INVALID", "stuck")]
)
def test_a_success_does_not_stand_for_what_came_after_it(
    refuses: bool, verdict: str, end: str
) -> None:
    """A task that is started again after a success ends as its last attempt does."""
    story = Story().starts().does(ADA, BOB, EVE, KIM).ends().suffers(STALE).starts()
    if refuses:
        story.states("refused", "the store is an older copy")
    judgement = judged(story.ends(1), ALL)
    assert (judgement.verdict, judgement.end) == (verdict, end)


# redone_step


def test_a_step_that_was_not_complete_may_be_run_again() -> None:
    """The request that was cut off by the kill is sent again, and nothing else."""
    story = (
        Story()
        .starts()
        .does(ADA, BOB)
        .applies(EVE)
        .killed("payments.charge#3.applied")
        .starts()
        .repeats(EVE)
        .does(KIM)
        .ends()
    )
    assert not list(redone_step(story.history, ALL))
    assert not list(silent_restart(story.history, ALL))


def test_a_step_that_was_complete_may_not_be_run_again() -> None:
    """The service dedupes it, so no effect is doubled, and it is a redo all the same."""
    story = (
        Story()
        .starts()
        .does(ADA, BOB, EVE)
        .killed("payments.charge#3.answered")
        .starts()
        .repeats(BOB, EVE)
        .does(KIM)
        .ends()
    )
    [found] = redone_step(story.history, ALL)
    assert (found.kind, found.operation) == ("redone_step", "payments.charge")
    assert found.subject == "amount=100|customer=bob"
    words = "payments.charge (charge of 100 to bob)"
    assert found.expected == f"{words}: not again once it was complete"
    assert found.seen == "run again by attempt 2"
    first, again = (index for index, body in story.history.requests if body.wants == BOB)
    assert found.witness == (first, again)
    assert not list(duplicate_effect(story.history, ALL))


def test_a_reported_step_is_complete_once_it_is_recorded() -> None:
    """The step whose record was there is run again; the one that was only started may be."""
    story = (
        Story()
        .starts()
        .step("one", "started", "recorded")
        .step("two", "started", "recorded")
        .step("three", "started")
        .killed("9ms")
        .starts()
        .step("one", "restored")
        .step("two", "started", "recorded")
        .step("three", "started", "recorded")
        .ends()
    )
    [found] = redone_step(story.history, STEPS)
    assert (found.operation, found.subject) == ("two", "two")
    assert found.because == "it was complete at event 4, and event 10 runs it again"


def test_a_restored_step_is_not_run_again() -> None:
    """To use a stored result is what a checkpoint is for."""
    story = (
        Story()
        .starts()
        .step("one", "started", "recorded")
        .step("two", "started")
        .killed("9ms")
        .starts()
        .step("one", "restored")
        .step("two", "started", "recorded")
        .step("three", "started", "recorded")
        .ends()
    )
    assert not list(redone_step(story.history, STEPS))


def test_a_step_that_is_run_again_twice_is_told_once() -> None:
    """Two resumes that redo the same step show one fault."""
    story = (
        Story()
        .starts()
        .does(ADA, BOB, EVE)
        .killed("payments.charge#3.answered")
        .starts()
        .repeats(BOB)
        .ends(1)
        .starts()
        .repeats(BOB, EVE)
        .does(KIM)
        .ends()
    )
    assert [found.seen for found in redone_step(story.history, ALL)] == ["run again by attempt 2"]


@pytest.mark.parametrize(
    ("patterns", "findings"),
    [
        ((), 1),
        (("payments.charge",), 0),
        (("payments.*",), 0),
        (("email.*", "*.charge"), 0),
        (("email.*",), 1),
    ],
)
def test_the_scenario_may_allow_a_redo(patterns: tuple[str, ...], findings: int) -> None:
    """By pattern of operations, or of steps."""
    story = (
        Story()
        .starts()
        .does(ADA, BOB, EVE)
        .killed("payments.charge#3.answered")
        .starts()
        .repeats(BOB, EVE)
        .does(KIM)
        .ends()
    )
    expected = teaches(undisturbed(ADA, BOB, EVE, KIM), redo=patterns)
    assert len(list(redone_step(story.history, expected))) == findings


# silent_restart


def test_a_resume_that_goes_on_is_no_restart() -> None:
    """It begins with the first thing that was not complete."""
    story = (
        Story()
        .starts()
        .does(ADA, BOB)
        .killed("payments.charge#2.answered")
        .starts()
        .repeats(BOB)
        .does(EVE, KIM)
        .ends()
    )
    assert not list(silent_restart(story.history, ALL))


def test_a_resume_that_begins_at_the_first_step_is_a_restart() -> None:
    """Everything that was complete is done again: one finding, and no redone step beside it."""
    story = (
        Story()
        .starts()
        .does(ADA, BOB, EVE)
        .killed("payments.charge#3.answered")
        .starts()
        .does(ADA, BOB, EVE, KIM)
        .ends()
    )
    [found] = silent_restart(story.history, ALL)
    assert (found.kind, found.operation, found.subject) == (
        "silent_restart",
        "payments.charge",
        "first step",
    )
    assert found.seen == "attempt 2 began again at its first step, payments.charge"
    assert found.because == (
        "2 completed steps were known to earlier attempts, and it ran 2 of them again"
    )
    requests = [index for index, body in story.history.requests if body.wants == ADA]
    assert found.witness == tuple(requests)
    assert not list(redone_step(story.history, ALL))


def test_a_restart_shows_in_reported_steps_too() -> None:
    """The task runs what it had recorded, from its first step on."""
    story = (
        Story()
        .starts()
        .step("one", "started", "recorded")
        .step("two", "started", "recorded")
        .killed("9ms")
        .starts()
        .step("one", "started", "recorded")
        .step("two", "started", "recorded")
        .step("three", "started", "recorded")
        .ends()
    )
    [found] = silent_restart(story.history, STEPS)
    assert found.seen == "attempt 2 began again at its first step, one"
    assert not list(redone_step(story.history, STEPS))


def test_a_restart_that_is_cut_short_is_a_restart() -> None:
    """An attempt that was killed before it came to the rest had begun again all the same."""
    story = (
        Story()
        .starts()
        .does(ADA, BOB, EVE)
        .killed("payments.charge#3.answered")
        .starts()
        .repeats(ADA)
        .killed("payments.charge#1.answered")
        .starts()
        .does(KIM)
        .ends()
    )
    assert len(list(silent_restart(story.history, ALL))) == 1


def test_a_redo_that_is_cut_short_is_no_restart() -> None:
    """An attempt that was killed had begun again only if it began at the first step."""
    story = (
        Story()
        .starts()
        .does(ADA, BOB, EVE)
        .killed("payments.charge#3.answered")
        .starts()
        .repeats(BOB)
        .killed("payments.charge#1.answered")
        .starts()
        .does(KIM)
        .ends()
    )
    assert not list(silent_restart(story.history, ALL))
    assert len(list(redone_step(story.history, ALL))) == 1


@pytest.mark.parametrize("recorded", [False, True], ids=["requests", "steps"])
def test_a_task_that_starts_over_each_time_has_restarted_once(*, recorded: bool) -> None:
    """Two restarts are one finding, and what they do again is none beside it."""

    def life(story: Story) -> Story:
        story.starts()
        for name, effect in (("one", ADA), ("two", BOB), ("three", EVE)):
            story = story.step(name, "started") if recorded else story
            story.does(effect)
            story = story.step(name, "recorded") if recorded else story
        return story

    story = life(life(life(Story()).killed("8ms")).killed("9ms")).does(KIM).ends()
    assert [found.seen.split(" began")[0] for found in silent_restart(story.history, ALL)] == [
        "attempt 2"
    ]
    assert not list(redone_step(story.history, ALL))


def test_a_first_step_alone_that_is_redone_is_no_restart() -> None:
    """The task ran its first step again and then went on where it was."""
    story = (
        Story()
        .starts()
        .does(ADA, BOB, EVE)
        .killed("payments.charge#3.answered")
        .starts()
        .repeats(ADA)
        .does(KIM)
        .ends()
    )
    assert not list(silent_restart(story.history, ALL))
    assert len(list(redone_step(story.history, ALL))) == 1


def test_a_resume_that_redoes_less_than_was_complete_is_no_restart() -> None:
    """The first step is legitimately there twice, and the resume begins at the one after it: it
    asks for it once, where a restart would ask twice.
    """
    expected = expecting(ADA, BOB, ADA, KIM)
    story = (
        Story()
        .starts()
        .does(ADA, BOB, ADA)
        .asks(KIM)
        .killed("payments.charge#4.received")
        .starts()
        .does(BOB, ADA, KIM)
        .ends()
    )
    assert not list(silent_restart(story.history, expected))
    assert len(list(redone_step(story.history, expected))) == 2


def test_a_first_step_that_may_be_redone_does_not_hide_a_restart() -> None:
    """Where connecting again is allowed, running all the rest again is a restart still."""
    expected = teaches(
        Story()
        .starts()
        .step("connect", "started", "recorded")
        .step("one", "started", "recorded")
        .step("two", "started", "recorded")
        .ends(),
        redo=["connect"],
    )
    story = (
        Story()
        .starts()
        .step("connect", "started", "recorded")
        .step("one", "started", "recorded")
        .step("two", "started", "recorded")
        .killed("9ms")
        .starts()
        .step("connect", "started", "recorded")
        .step("one", "started", "recorded")
        .step("two", "started", "recorded")
        .ends()
    )
    assert len(list(silent_restart(story.history, expected))) == 1
    assert not list(redone_step(story.history, expected))
