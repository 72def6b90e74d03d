"""Why a task is stuck: each sentence from its last words, its requests and the files it left."""

from __future__ import annotations

import pytest

from chaoskit.checkers.blocked import (
    ALWAYS_REFUSED,
    LOCK_OF_ANOTHER,
    NAMES_A_FILE,
    NO_ANSWER,
    STALE_LOCK,
    UNREADABLE,
)
from chaoskit.model.events import FileLeft
from chaoskit.model.findings import Diagnosis
from tests.checkers.builder import Story, charge, expecting, judged

ADA = charge("ada")
HELD = "another run holds the lock"
TORN = "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"


def killed() -> Story:
    """A task that was killed once."""
    return Story().starts().does(ADA).killed("payments.charge#1.answered")


def failed(*said: str) -> Story:
    """The same, and each resume fails with these words."""
    story = killed()
    for words in said:
        story.starts().ends(1, says=words)
    return story


def diagnosis(story: Story) -> Diagnosis | None:
    """What explains that it is stuck."""
    [found] = (f for f in judged(story, expecting(ADA)).findings if f.kind == "stuck")
    return found.diagnosis


@pytest.mark.parametrize(
    ("file", "missing", "evidence"),
    [
        (FileLeft(0, ""), STALE_LOCK, "run.lock is there, and is empty: it names no owner"),
        (
            FileLeft(5, "4711\n", pid=4711),
            STALE_LOCK,
            "no process of that number runs",
        ),
        (
            FileLeft(4, "4711", pid=4711, runs=True),
            LOCK_OF_ANOTHER,
            "a process of that number runs, and it is none of the task's",
        ),
        (
            FileLeft(6, "host-a"),
            STALE_LOCK,
            "run.lock is there with 6 bytes, and begins with 'host-a'",
        ),
    ],
)
def test_a_lock_is_told_with_its_owner(file: FileLeft, missing: str, evidence: str) -> None:
    """The file that is there at the end, and whether the process that it names still runs."""
    found = diagnosis(failed(HELD, HELD).leaves_behind({"run.lock": file}))
    assert found is not None
    assert found.missing == missing
    holds = f"run.lock is there and holds the process number {file.pid}: " if file.pid else ""
    assert found.evidence == (
        f"each of 2 attempts ended with an error, the last one with: {HELD}; {holds}{evidence}"
    )


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ([HELD, "KeyError: 'done'"], "run.lock"),
        (["KeyError: 'done'"], "run.lock"),
        ([HELD], "notes.txt"),
        (["sqlite3.OperationalError: database is locked"], "run.lock"),
    ],
    ids=["not-all", "other-words", "other-file", "a-database's"],
)
def test_a_lock_is_not_blamed_without_words_and_a_file(said: list[str], name: str) -> None:
    """Every attempt must speak of it, and a file of such a name must be there."""
    assert diagnosis(failed(*said).leaves_behind({name: FileLeft(0, "")})) is None


def test_the_file_that_cannot_be_read_is_told_with_its_first_bytes() -> None:
    """As it is at the end; a lock that is there too is no record."""
    left = {
        "a.lock": FileLeft(0, ""),
        "b.json": FileLeft(0, ""),
        "c.json": FileLeft(9, '{"done": '),
    }
    found = diagnosis(failed(TORN, TORN).leaves_behind(left))
    assert found is not None
    assert found.missing == UNREADABLE
    assert found.evidence.endswith(
        f"{TORN}; b.json is there, and is empty; "
        "c.json is there with 9 bytes, and begins with '{\"done\": '"
    )


def test_a_file_that_all_last_words_name_is_told() -> None:
    """No cause is claimed, only what is there."""
    says = "FileExistsError: [Errno 17] File exists: '/work/out/part-1'"
    left = {"out/part-1": FileLeft(3, "abc"), "part": FileLeft(0, "")}
    found = diagnosis(failed(says).leaves_behind(left))
    assert found is not None
    assert found.missing == NAMES_A_FILE
    assert found.evidence == (
        f"the attempt ended with an error, the last one with: {says}; "
        "out/part-1 is there with 3 bytes, and begins with 'abc'"
    )
    assert diagnosis(failed(says, "no").leaves_behind(left)) is None


def test_an_address_that_does_not_answer_is_told() -> None:
    """With what the tracer saw of it; not where one attempt ended otherwise."""
    says = "ConnectionRefusedError: [Errno 111] Connection refused"
    story = killed().starts().notes("nobody", "127.0.0.1:9").ends(1, says=says)
    found = diagnosis(story)
    assert found is not None
    assert found.missing == NO_ANSWER
    assert found.evidence.endswith("; attempt 2 called 127.0.0.1:9, where nobody listens")
    assert diagnosis(failed(says, "KeyError: 1")) is None


@pytest.mark.parametrize("says", ["FileNotFoundError: a.txt", "the job timed out", ""])
def test_no_address_is_blamed_where_the_words_are_of_something_else(says: str) -> None:
    """A file that is not there, a job that took too long, silence."""
    assert diagnosis(failed(says, says)) is None


def test_a_request_that_is_refused_each_time_is_told() -> None:
    """By its name and its status; not where another attempt was refused something else."""
    story = killed()
    for _ in range(2):
        story.starts().fails(charge("bob"), 409).ends(1, says="conflict")
    found = diagnosis(story)
    assert found is not None
    assert found.missing == ALWAYS_REFUSED
    assert found.evidence == (
        "the last request of each of 2 attempts, payments.charge, was answered with status 409; "
        "the last words: conflict"
    )
    assert diagnosis(story.starts().does(charge("bob")).ends(1, says="conflict")) is None
