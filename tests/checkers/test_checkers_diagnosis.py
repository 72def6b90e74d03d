"""Which gap in the checkpoint explains a finding: one literal history for each."""

from __future__ import annotations

import msgspec
import pytest

from chaoskit.checkers.blocked import UNREADABLE
from chaoskit.checkers.diagnosis import (
    FORGOTTEN_KEY,
    FRESH_KEY,
    INPUTS,
    KEY_OF_A_CALL,
    ORDER,
    QUEUED_AGAIN,
    REPEATS,
    RETRY,
    UNDISTURBED,
    UNSYNCED_LOSS,
    diagnose,
)
from chaoskit.checkers.losses import (
    COARSE_KEY,
    EARLY_FINISH,
    EARLY_RECORD,
    ERROR_AS_END,
    HALF_REPLACED,
    NOTHING_DONE,
    PASSED_OVER,
)
from chaoskit.checkers.redos import (
    NOT_A_RECORD,
    NOTHING,
    RECORD_IGNORED,
    TWICE_HERE,
    UNKNOWN_RECORD,
    UNRECORDED,
)
from chaoskit.model.effects import Effect, flatten
from chaoskit.model.expectation import Expectation, Recorded
from chaoskit.model.findings import Diagnosis, Finding
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


def diagnosed(kind: str, story: Story, expected: Expectation) -> Diagnosis:
    """The diagnosis of the one finding of this kind."""
    [found] = (f for f in judged(story, expected).findings if f.kind == kind)
    assert found.diagnosis is not None
    return found.diagnosis


def test_order() -> None:
    """A charge without a key that was booked, and not recorded when the kill came."""
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
    found = diagnosed("duplicate_effect", story, expecting(ADA, BOB, EVE))
    assert found.missing == ORDER
    assert "booked by the service before the kill" in found.evidence


def test_order_with_the_step_that_was_running() -> None:
    """Where the task reports its steps, the one that was cut off is named."""
    story = (
        Story()
        .starts()
        .step("charge/ada", "started")
        .does(ADA)
        .step("charge/ada", "recorded")
        .step("charge/bob", "started")
        .applies(BOB)
        .killed("payments.charge#2.applied")
        .starts()
        .step("charge/bob", "started")
        .does(BOB)
        .step("charge/bob", "recorded")
        .ends()
    )
    found = diagnosed("duplicate_effect", story, expecting(ADA, BOB))
    assert found.missing == ORDER
    assert found.evidence == (
        "step charge/bob had begun, and its completion was not recorded when the kill came"
    )


def test_no_evidence_claims_what_the_history_denies() -> None:
    """A duplicate of a step whose completion was recorded is not told as one of a step whose
    completion was not.
    """
    story = (
        Story()
        .starts()
        .step("charge/ada", "started")
        .does(ADA)
        .step("charge/ada", "recorded")
        .step("charge/bob", "started")
        .does(BOB)
        .killed("payments.charge#2.answered")
        .starts()
        .step("charge/ada", "started")
        .does(ADA)
        .ends()
    )
    found = diagnosed("duplicate_effect", story, expecting(ADA, BOB))
    assert "step charge/ada had begun, and its completion was not recorded" not in found.evidence


def test_fresh_key() -> None:
    """Each attempt came with a key of its own."""
    story = Story().starts().applies(charge("ada", key="k1")).killed("payments.charge#1.applied")
    story.starts().does(charge("ada", key="k2")).ends()
    found = diagnosed("duplicate_effect", story, expecting(ADA))
    assert found.missing == FRESH_KEY
    assert found.evidence == "the same effect was asked for with 2 different keys"


def test_keys_of_one_attempt_are_not_told_as_those_of_several() -> None:
    """Where one attempt did it twice under two keys, no other attempt had a part in it."""
    story = Story().starts().killed("payments.charge#1.received").starts()
    story.does(charge("ada", key="k1"), charge("ada", key="k2")).ends()
    found = diagnosed("duplicate_effect", story, expecting(ADA))
    assert found.missing == KEY_OF_A_CALL
    assert found.evidence == (
        "attempt 2 did it twice, each time with another key; no other attempt did"
    )


def test_what_one_attempt_did_twice_is_not_told_as_done_before_the_kill() -> None:
    """By a resume alone the work was queued again; a first attempt has repeated it."""
    story = Story().starts().killed("payments.charge#1.received").starts().does(ADA, ADA).ends()
    found = diagnosed("duplicate_effect", story, expecting(ADA))
    assert (found.missing, found.evidence) == (
        QUEUED_AGAIN,
        "attempt 2 did it twice; no other attempt did",
    )
    tried = diagnosed("duplicate_effect", undisturbed(ADA, ADA), expecting(ADA))
    assert (tried.missing, tried.evidence) == (
        REPEATS,
        "attempt 1 did it twice; no other attempt did",
    )


def test_a_request_that_is_sent_again_without_an_answer_is_a_retry() -> None:
    """Whichever attempt sends it, and only where the history shows that no good answer had come."""
    retry = Story().starts().loses(ADA).does(ADA).ends()
    found = diagnosed("duplicate_effect", retry, expecting(ADA))
    assert (found.missing, found.evidence) == (
        RETRY,
        (
            "attempt 1 sent request 2 although it had no good answer to request 1, which was "
            "carried out all the same"
        ),
    )
    resumed = Story().starts().killed("payments.charge#1.received").starts().loses(ADA).does(ADA)
    assert diagnosed("duplicate_effect", resumed.ends(), expecting(ADA)).missing == RETRY


def test_a_second_runner_is_not_told_as_a_kill() -> None:
    """Where nothing was killed in between, the evidence does not say so."""
    story = Story().starts().does(ADA).suffers("pause@payments.charge#1.answered").starts()
    found = diagnosed("duplicate_effect", story.does(ADA).ends(), expecting(ADA))
    assert (found.missing, "kill" in found.evidence) == (ORDER, False)


def test_a_key_that_a_disk_lost_is_not_told_as_a_new_one() -> None:
    """Where the task leaves what it writes without a sync; else the key was made anew."""
    story = Story().starts().does(charge("ada", key="k1"))
    story.suffers("power:drop@sendto(payments)#1+after").ends(9, how="killed")
    story.starts().does(charge("ada", key="k2")).ends()
    synced = expecting(ADA)
    unsynced = msgspec.structs.replace(synced, unsynced=(synced.identify(ADA),))
    assert diagnosed("duplicate_effect", story, unsynced) == UNSYNCED_LOSS
    assert diagnosed("duplicate_effect", story, synced).missing == FRESH_KEY


def test_a_row_that_was_deleted_to_be_inserted_again() -> None:
    """The delete was committed, and the insert never came: not a record that was too early."""

    def change(kind: str, ref: str) -> Effect:
        return Effect(service="database", kind=f"t.{kind}", fields=(("n", ref),), ref=ref)

    replaced = [change(kind, ref) for ref in "12" for kind in ("delete", "insert")]
    expected = teaches(Story().starts().books(*replaced).ends())
    story = Story().starts().books(*replaced[:3]).killed("a#1").starts().ends()
    assert diagnosed("lost_effect", story, expected).missing == HALF_REPLACED
    early = Story().starts().books(*replaced[:1], *replaced[2:]).ends()
    assert diagnosed("lost_effect", early, expected).missing == HALF_REPLACED
    other = [change("insert", "1"), change("insert", "2")]
    gone = Story().starts().books(other[1]).killed("a#1").starts().ends()
    assert (
        diagnosed("lost_effect", gone, teaches(Story().starts().books(*other).ends())).missing
        == PASSED_OVER
    )


def test_forgotten_key() -> None:
    """Both requests carried the same key, and the service booked both."""
    keyed = charge("ada", key="k1")
    story = Story().starts().applies(keyed).killed("payments.charge#1.applied")
    story.starts().does(keyed).ends()
    found = diagnosed("duplicate_effect", story, expecting(ADA))
    assert found.missing == FORGOTTEN_KEY
    assert found.evidence == "both requests carried the key k1"


def test_forgotten_key_of_an_effect_that_is_legitimately_there_twice() -> None:
    """Of two identical charges with a key each, the second was booked twice with one key."""
    one, two = charge("ada", key="k1"), charge("ada", key="k2")
    story = Story().starts().does(one).applies(two).killed("payments.charge#2.applied")
    story.starts().does(two).ends()
    found = diagnosed("duplicate_effect", story, expecting(one, two))
    assert found.missing == FORGOTTEN_KEY
    assert "k2" in found.evidence


def test_coarse_key() -> None:
    """The second of two identical charges was taken for a repeat of the first."""
    keyed = charge("ada", key="hash-of-ada")
    expected = expecting(keyed, keyed, BOB)
    story = Story().starts().does(keyed).killed("payments.charge#1.answered")
    story.starts().repeats(keyed).does(BOB).ends()
    found = diagnosed("lost_effect", story, expected)
    assert found.missing == COARSE_KEY
    request = story.history.requests[1][0]
    assert found.evidence == (
        f"the request at event {request} asked for it with the key hash-of-ada, "
        "which the service had already seen"
    )


def test_early_record() -> None:
    """Nobody asked for the charge any more. That a record came before it is said where the baseline
    shows that order, and not otherwise.
    """
    story = Story().starts().does(ADA).asks(BOB).killed("payments.charge#2.received")
    story.starts().does(EVE).ends()
    expected = expecting(ADA, BOB, EVE)
    found = diagnosed("lost_effect", story, msgspec.structs.replace(expected, record_first=True))
    assert found.missing == EARLY_RECORD
    assert found.evidence.startswith("no attempt asked for it after the kill, and an undisturbed")
    unknown = diagnosed("lost_effect", story, expected)
    assert (unknown.missing, unknown.evidence) == (
        PASSED_OVER,
        "no attempt asked for it after the kill; attempt 2 ended with success",
    )


def test_an_error_that_is_taken_for_the_end_is_told_with_its_status() -> None:
    """An expired token, say: the last answer was 401, and the task claimed success."""
    story = Story().starts().does(ADA).killed("payments.charge#1.answered").starts()
    story.fails(BOB, 401).ends()
    found = diagnosed("false_success", story, expecting(ADA, BOB))
    assert (found.missing, found.evidence) == (
        ERROR_AS_END,
        (
            "request 2 of attempt 2 was answered with status 401, and the attempt ended with "
            "success all the same"
        ),
    )


def test_what_happens_without_any_fault_is_no_fault_of_the_resume() -> None:
    """As a control shows: the checkpoint has no part in it."""
    story = Story().starts().does(ADA).ends()
    for kind, wanted in (("false_success", (ADA, BOB)), ("lost_effect", (BOB, ADA))):
        found = diagnosed(kind, story, expecting(*wanted))
        assert found.missing == UNDISTURBED
        assert found.evidence.startswith("no fault landed in this trial; attempt 1 ended")


def test_a_swallowed_request_explains_its_own_effect_alone() -> None:
    """A retry that was rightly deduped is no reason for the loss of another charge, whatever they
    have in common.
    """
    keyed = charge("ada", key="k1")
    story = Story().starts().applies(keyed).killed("payments.charge#1.applied")
    story.starts().repeats(keyed).does(EVE).ends()
    found = diagnosed("lost_effect", story, expecting(keyed, BOB, EVE))
    assert found.missing == PASSED_OVER


def test_nothing() -> None:
    """The resume began at the first step again."""
    story = Story().starts().does(ADA, BOB).killed("payments.charge#2.answered")
    story.starts().does(ADA, BOB, EVE).ends()
    found = diagnosed("silent_restart", story, expecting(ADA, BOB, EVE))
    assert found.missing == NOTHING
    assert "it ran 1 of them again" in found.evidence


def test_a_step_run_again_is_explained_by_what_is_known_of_its_record() -> None:
    """A complete step was run again. Whether a record of it was there at the kill, whether an
    undisturbed run writes anything after it, whether nothing is known: each is told as such.
    """
    known = expecting(ADA, BOB, EVE)
    point = "rename(done.tmp->done)#2+after"
    bob, eve = (Recorded(n, known.order[n - 1], f"rename(done.tmp->done)#{n}") for n in (2, 3))

    def missing(landed: str, **recorded: Recorded) -> str:
        story = Story().starts().does(ADA, BOB).killed(landed)
        story.starts().repeats(BOB).does(EVE).ends()
        expected = msgspec.structs.replace(known, recorded=recorded)
        return diagnosed("redone_step", story, expected).missing

    assert missing(point, **{point: bob}) == RECORD_IGNORED

    story = Story().starts().does(ADA, BOB, EVE).killed("payments.charge#3.answered")
    story.starts().repeats(BOB, EVE).ends()

    def later(**recorded: Recorded) -> str:
        expected = msgspec.structs.replace(known, recorded=recorded)
        return diagnosed("redone_step", story, expected).missing

    assert later(**{point: bob}) == NOT_A_RECORD
    assert later(**{point: eve}) == UNRECORDED
    assert later() == UNKNOWN_RECORD


def test_a_step_that_one_attempt_runs_twice() -> None:
    """A resume asked twice for a charge that the service had not seen before."""
    story = Story().starts().does(ADA).killed("payments.charge#1.answered")
    story.starts().does(BOB).repeats(BOB).does(EVE).ends()
    found = diagnosed("redone_step", story, expecting(ADA, BOB, EVE))
    assert found.missing == TWICE_HERE


def test_early_finish() -> None:
    """The resume did something, and ended before the closing mail. Of one that did nothing at all
    it is told so, with its last words: a lock, an option, a record may be the reason.
    """
    story = Story().starts().does(ADA).killed("payments.charge#1.answered").starts()
    wanted = expecting(ADA, BOB, mail("owner"))
    nothing = diagnosed("false_success", story.ends(0, says="locked by 17\n"), wanted)
    assert (nothing.missing, nothing.evidence) == (
        NOTHING_DONE,
        "attempt 2 asked for no effect and ended with status 0; its last words: locked by 17",
    )
    more = Story().starts().does(ADA).killed("payments.charge#1.answered").starts().does(BOB)
    assert diagnosed("false_success", more.ends(), wanted).missing == EARLY_FINISH


def test_inputs() -> None:
    """The resume used a value that only the dead process had."""
    story = Story().starts().asks(mail("ada", "owes 7")).killed("email.send#1.received")
    story.starts().does(mail("ada", "owes None")).ends()
    found = diagnosed("wrong_inputs", story, expecting(mail("ada", "owes 7")))
    assert found.missing == INPUTS
    assert "text is 'owes None', not 'owes 7'" in found.evidence


def change(who: str, **columns: tuple[object, object]) -> Effect:
    """A row of the database whose columns were changed, from the first value to the second."""
    now = {name: pair[1] for name, pair in columns.items()}
    fields = flatten({"name": who, **now, "was": {n: pair[0] for n, pair in columns.items()}})
    return Effect(service="database", kind="x.update", fields=fields, who=who, ref=who)


AGAIN = [
    ({"balance": (10, 15)}, {"balance": (15, 20)}, "balance 10, 15, 20"),
    ({"owed": ("0.3", "0.2")}, {"owed": ("0.2", "0.1")}, "owed 0.3, 0.2, 0.1"),
    ({"log": ("a", "ab")}, {"log": ("ab", "abb")}, "log a, ab, abb"),
    ({"n": (1, 2), "m": (0, 5)}, {"n": (2, 3), "m": (5, 10)}, "m 0, 5, 10; n 1, 2, 3"),
]
NOT_AGAIN = [
    ({"balance": (10, 15)}, {"balance": (15, 21)}),  # by another sum
    ({"balance": (10, 15)}, {"balance": (16, 21)}),  # of something else
    ({"n": (1, 2), "m": (0, 5)}, {"n": (2, 3)}),  # half of it
    ({"state": ("new", "old")}, {"state": ("old", "gone")}),
    ({"much": ("0", "9e9999999")}, {"much": ("9e9999999", "1")}),  # no context can take it off
]


def changed_by_both(first: Effect, second: Effect) -> Diagnosis:
    """What is said where the resume makes the second change after the first one."""
    story = Story().starts().books(first).killed("task.crossing#1")
    return diagnosed("wrong_inputs", story.starts().books(second).ends(), expecting(first))


@pytest.mark.parametrize(("first", "second", "words"), AGAIN)
def test_a_change_on_its_own_result(
    first: dict[str, tuple[object, object]], second: dict[str, tuple[object, object]], words: str
) -> None:
    """A row was changed by as much once more: it is the order that is wrong, not the inputs."""
    found = changed_by_both(change("ada", **first), change("ada", **second))
    assert found.missing == ORDER
    assert found.evidence == f"the change was made a second time, on its own result: {words}"


@pytest.mark.parametrize(("first", "second"), NOT_AGAIN)
def test_another_change_of_the_same_row(
    first: dict[str, tuple[object, object]], second: dict[str, tuple[object, object]]
) -> None:
    """What is not the same change is a matter of the inputs; so is that of another row."""
    assert changed_by_both(change("ada", **first), change("ada", **second)).missing == INPUTS
    again = changed_by_both(change("ada", n=(1, 2)), change("bob", n=(2, 3)))
    assert again.missing == INPUTS


def test_half_applied() -> None:
    """A file that was written in place was left as the kill found it."""
    expected = teaches(undisturbed(ADA).leaves({"a.txt": "11"}))
    story = Story().starts().does(ADA).killed("payments.charge#1.answered").starts().ends()
    found = diagnosed("diverged_state", story.leaves({"a.txt": "1"}), expected)
    assert "HALF" in found.missing
    assert found.evidence == "a.txt has other content"


THERE_ALREADY = [
    'psycopg.errors.DuplicateTable: relation "customers" already exists',
    'ERROR:  duplicate key value violates unique constraint "customers_pkey"',
    "sqlite3.OperationalError: table customers already exists",
    "sqlite3.IntegrityError: UNIQUE constraint failed: customers.id",
    "MySQLdb.IntegrityError: (1062, \"Duplicate entry '1' for key 'PRIMARY'\")",
]


@pytest.mark.parametrize("says", THERE_ALREADY)
def test_a_change_that_is_there_already(says: str) -> None:
    """The database refuses to make it twice, at each resume: its record is what is missing."""
    story = Story().starts().does(ADA).books(row("ada")).killed("payments.charge#1.answered")
    story.starts().does(BOB).ends(1, says=says).starts().does(BOB).ends(1, says=says)
    found = diagnosed("stuck", story, expecting(ADA, BOB, row("ada"), row("eve")))
    assert found.missing == ORDER
    assert says in found.evidence


@pytest.mark.parametrize(
    "says", ["FileExistsError: run.lock", "the file run.lock already exists", "not there"]
)
def test_a_lock_that_is_there_already_is_no_change(says: str) -> None:
    """Nothing is said where it is not a database that refuses, or not at each resume."""
    story = Story().starts().does(ADA).killed("payments.charge#1.answered")
    story.starts().ends(1, says=THERE_ALREADY[0]).starts().ends(1, says=says)
    [found] = (f for f in judged(story, expecting(ADA, BOB)).findings if f.kind == "stuck")
    assert found.diagnosis is None


TORN_WORDS = [
    "Traceback (most recent call last):\n  a\nValueError: invalid literal for int()",
    "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    "SyntaxError: Unexpected end of JSON input\n    at JSON.parse (<a>)\n\nNode.js v20.20.2",
    "panic: unexpected end of JSON input\n\ngoroutine 1 [running]:\nexit status 2",
    "sqlite3.DatabaseError: file is not a database",
]


@pytest.mark.parametrize("says", TORN_WORDS)
def test_a_record_that_cannot_be_read_back(says: str) -> None:
    """Each resume dies of reading, and asks no service for anything before that."""
    story = Story().starts().does(ADA).killed("payments.charge#1.answered")
    story.starts().ends(1, says=says).starts().ends(1, says=says)
    found = diagnosed("stuck", story, expecting(ADA, BOB))
    assert found.missing == UNREADABLE
    assert found.evidence.startswith("each of 2 attempts ended before it asked a service")


@pytest.mark.parametrize(
    "says",
    ["already running", "FileNotFoundError: no such file: 'state.json'", "KeyError: 'done'", ""],
)
def test_other_last_words_are_no_torn_record(says: str) -> None:
    """A lock, a missing file and silence explain themselves, or nothing does."""
    story = Story().starts().does(ADA).killed("payments.charge#1.answered")
    story.starts().ends(1, says=TORN_WORDS[0]).starts().ends(1, says=says)
    [found] = (f for f in judged(story, expecting(ADA, BOB)).findings if f.kind == "stuck")
    assert found.diagnosis is None


def test_what_a_service_answered_may_be_what_could_not_be_read() -> None:
    """After a request, words of a text that is not whole say nothing of the task's record."""
    story = Story().starts().does(ADA).killed("payments.charge#1.answered")
    story.starts().looks("payments", "list").ends(1, says=TORN_WORDS[1])
    [found] = (f for f in judged(story, expecting(ADA, BOB)).findings if f.kind == "stuck")
    assert found.diagnosis is None


@pytest.mark.parametrize("kind", ["stuck", "leftover_process"])
def test_what_no_checkpoint_explains_has_no_diagnosis(kind: str) -> None:
    """Their own words say what to look at."""
    story = Story().starts().does(ADA).ends(1, leftovers=["sleep 600"])
    [found] = (f for f in judged(story, expecting(ADA)).findings if f.kind == kind)
    assert found.diagnosis is None


def test_a_kind_that_nobody_knows_has_no_diagnosis() -> None:
    """A checker of the user's own may find what it likes."""
    strange = Finding(
        kind="too_slow", operation="task", subject="", expected="", seen="", because=""
    )
    assert diagnose(strange, Story().history, expecting(ADA)) is None


@pytest.mark.parametrize("missing", [ORDER, FRESH_KEY, FORGOTTEN_KEY, COARSE_KEY, EARLY_RECORD])
def test_every_gap_is_named_in_words(missing: str) -> None:
    """A reader who does not know the classes understands the sentence before them."""
    assert len(missing.split()) >= 5
