"""How a trial ended and what it left behind."""

from __future__ import annotations

import msgspec
import pytest

from chaoskit.checkers.blocked import REFUSES_A_KILL
from chaoskit.checkers.diagnosis import diagnose
from chaoskit.checkers.ending import leftover_process, stuck
from chaoskit.model.events import How
from chaoskit.model.expectation import Expectation
from tests.checkers.builder import Story, charge, expecting

ADA = charge("ada")


DAMAGE, CHANGE = "damage:torn:run.json", "change:inputs"


def killed(*before: str) -> Story:
    """A task that was killed once, and whose resume begins after what was done ``before`` it."""
    story = Story().starts().does(ADA).killed("payments.charge#1.answered")
    return story.suffers(*before).starts()


def interrupted(fault: str) -> Story:
    """The same, by another fault."""
    story = Story().starts().does(ADA).suffers(fault).ends(9, "killed")
    return story.starts()


# stuck


@pytest.mark.parametrize(
    "story",
    [
        killed().ends(),
        killed().ends(1).starts().ends(),
        killed().states("refused", "busy").ends(1).starts().ends(),
        killed(DAMAGE).states("refused", "the record is torn").ends(1),
        killed(CHANGE).states("refused", "the inputs differ").ends(1),
        killed().states("unknown", "no answer", step="charge/1").ends(3),
    ],
    ids=["completed", "completed-later", "refused-once", "damaged", "changed", "unknown"],
)
def test_a_legal_end_is_not_stuck(story: Story) -> None:
    """Success, an unknown outcome, and a refusal after more than a kill are ends, at once or at a
    later attempt.
    """
    assert not list(stuck(story.history, expecting(ADA)))


@pytest.mark.parametrize("fault", ["kill@a", "kill-leader@a", "stop:500ms@a", "late:1@a"])
def test_to_refuse_for_ever_after_an_interruption_is_to_be_stuck(fault: str) -> None:
    """However polite the words: nothing was damaged, and nobody else is at work."""
    landed = fault.replace("@a", "@payments.charge#1.received")
    story = interrupted(landed).states("refused", "a run is at work").ends(1)
    story.starts().states("refused", "a run is at work").ends(1)
    [found] = stuck(story.history, expecting(ADA))
    assert (found.kind, found.subject) == ("stuck", "refused")
    assert found.seen == "2 attempts after the last kill, none of which did"
    assert found.because == "the last one refused: a run is at work"
    diagnosis = diagnose(found, story.history, expecting(ADA))
    assert diagnosis is not None
    assert diagnosis.missing == REFUSES_A_KILL
    assert "nothing was damaged or changed before attempt 3" in diagnosis.evidence


def test_a_scenario_may_promise_refusals() -> None:
    """A person is asked then, each time."""
    story = killed().states("refused", "ask Ada").ends(1)
    promised = msgspec.structs.replace(expecting(ADA), refusals="allowed")
    assert not list(stuck(story.history, promised))
    assert list(stuck(story.history, expecting(ADA)))


def test_a_task_that_never_ends_by_itself_is_stuck() -> None:
    """Every attempt after the kill fails: the witness is all of them, the kill is not."""
    story = killed().ends(1).starts().ends(1, says="Traceback\nanother run holds the lock\n")
    [found] = stuck(story.history, expecting(ADA))
    assert (found.kind, found.operation, found.subject) == ("stuck", "task", "exit 1")
    assert found.seen == "2 attempts after the last kill, none of which did"
    assert found.because == (
        "the last one ended with status 1; its last words: another run holds the lock"
    )
    assert found.witness == tuple(index for index, _ in story.history.attempts[1:])


def test_one_attempt_is_told_in_the_singular() -> None:
    """And its last words are those of its error, not the version that Node.js ends with."""
    says = "Error: no total\n    at main (/srv/bill.js:3:9)\n\nNode.js v20.20.2\n"
    [found] = stuck(killed().ends(1, says=says).history, expecting(ADA))
    assert found.seen == "1 attempt after the last kill, which never did"
    assert found.because == "the last one ended with status 1; its last words: Error: no total"


@pytest.mark.parametrize(
    ("how", "code", "words"),
    [
        ("exit", 3, "ended with status 3"),
        ("signal", 11, "was ended by signal 11 of its own"),
        ("timeout", 9, "did not end within 1.0 s"),
        ("not-started", 127, "could not be started"),
    ],
)
def test_the_reason_says_how_the_last_attempt_failed(how: How, code: int, words: str) -> None:
    """Status, signal, time or no start at all."""
    [found] = stuck(killed().ends(code, how).history, expecting(ADA))
    assert found.because == f"the last one {words}"
    assert found.subject == f"{how} {code}"


def test_a_stated_end_of_an_earlier_attempt_is_none() -> None:
    """A task that refused once and then fails without a word is stuck."""
    story = killed().states("refused", "busy").ends(1).starts().ends(1)
    assert len(list(stuck(story.history, expecting(ADA)))) == 1


# leftover_process


def test_an_attempt_that_takes_all_its_processes_along_leaves_none() -> None:
    """Nothing is alive after the task has ended."""
    assert not list(leftover_process(killed().ends().history, Expectation()))


def test_processes_that_outlive_the_task_are_told() -> None:
    """The first attempt with leftovers is the witness, and three command lines are enough."""
    story = (
        killed()
        .ends(1, leftovers=["sleep 600", "tail -f log", "sh", "cat"])
        .starts()
        .ends(leftovers=["sleep 600"])
    )
    [found] = leftover_process(story.history, expecting(ADA))
    assert (found.kind, found.operation) == ("leftover_process", "task")
    assert found.seen == "4 after attempt 2"
    assert found.because == "sleep 600; tail -f log; sh"
    assert found.witness == (story.history.attempts[1][0],)
