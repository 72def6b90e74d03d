"""All checkers together: verdicts, causes, and what is not known."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chaoskit.checkers.check import CHECKERS, judge
from chaoskit.checkers.own import Checker
from chaoskit.model.effects import Effect
from chaoskit.model.events import StatedEnd
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import FINDING_KINDS, Finding, Judgement
from chaoskit.model.history import History
from chaoskit.model.schedule import Schedule, parse_schedule
from tests.checkers.builder import Story, charge, expecting, judged, teaches, undisturbed

ADA, BOB, EVE, KIM = charge("ada"), charge("bob"), charge("eve"), charge("kim")
ALL = expecting(ADA, BOB, EVE, KIM)


def careful() -> Story:
    """Four charges, a kill after the second, and a resume that goes on."""
    return (
        Story()
        .starts()
        .does(ADA, BOB)
        .killed("payments.charge#2.answered")
        .starts()
        .does(EVE, KIM)
        .ends()
    )


def careless() -> Story:
    """The same, but the resume does the second charge again."""
    return (
        Story()
        .starts()
        .does(ADA)
        .applies(BOB)
        .killed("payments.charge#2.applied")
        .starts()
        .does(BOB, EVE, KIM)
        .ends()
    )


def kinds(judgement: Judgement) -> list[str]:
    """The kinds of all findings, sorted."""
    return sorted(finding.kind for finding in judgement.findings)


def roots(judgement: Judgement) -> list[str]:
    """The kinds of the findings that nothing else explains, sorted."""
    return sorted(finding.kind for finding in judgement.roots)


# Verdicts.


def test_what_is_missing_of_a_history_that_was_cut_off_is_not_lost() -> None:
    """Of events that were left out nothing is known; what was seen, and a loop, stay findings."""
    lost = Story().starts().does(ADA).floods("crossings tick").ends()
    judgement = judged(lost, ALL)
    assert (judgement.verdict, judgement.findings) == ("UNKNOWN", ())
    assert "went beyond the 200,000 events" in judgement.unknowns[0]
    assert "crossings tick" in judgement.unknowns[0]
    twice = Story().starts().does(ADA, ADA).floods("requests payments.charge").ends()
    assert kinds(judged(twice, ALL)) == ["duplicate_effect"]
    loops = Story().starts().does(ADA).floods("calls write(log)").ends(how="timeout")
    assert kinds(judged(loops, ALL)) == ["stuck"]


def test_a_task_that_goes_on_where_it_was_killed_is_valid() -> None:
    """No finding, nothing unknown, and the end is told."""
    assert judged(careful(), ALL) == Judgement("VALID", (), (), "completed")


def test_a_finding_makes_a_trial_invalid() -> None:
    """One duplicate is enough."""
    judgement = judged(careless(), ALL)
    assert (judgement.verdict, kinds(judgement)) == ("INVALID", ["duplicate_effect"])


@pytest.mark.parametrize(
    ("story", "end"),
    [
        (careful(), "completed"),
        (Story().starts().states("refused", "the inputs differ").ends(1), "refused"),
        (
            Story().starts().states("unknown", "no answer", step="charge/7").ends(1),
            "unknown outcome of charge/7",
        ),
        (Story().starts().states("unknown", "no answer").ends(1), "unknown outcome of a step"),
        (Story().starts().ends(1), "stuck"),
        (Story(), "stuck"),
    ],
    ids=["completed", "refused", "unknown", "unknown-step", "failed", "nothing"],
)
def test_the_end_of_a_trial_is_told(story: Story, end: str) -> None:
    """Completed, refused, unknown outcome of a step, or stuck."""
    assert judged(story, ALL).end == end


@pytest.mark.parametrize("window", ["received", "applied"])
@pytest.mark.parametrize(("end", "verdict"), [("refused", "INVALID"), ("unknown", "VALID")])
def test_who_names_the_step_of_unknown_outcome_is_right(
    window: str, end: StatedEnd, verdict: str
) -> None:
    """Wherever it was killed; to refuse whatever has happened is to be stuck."""
    story = Story().starts().does(ADA)
    story = story.asks(BOB) if window == "received" else story.applies(BOB)
    story.killed(f"payments.charge#2.{window}").starts().states(end, "why", "charge/2").ends(1)
    assert judged(story, ALL).verdict == verdict


# What is not known is never valid.


def raising(history: History, expectation: Expectation) -> Iterator[Finding]:
    """A checker with a fault of its own."""
    raise KeyError("charge/7")


def raising_late(history: History, expectation: Expectation) -> Iterator[Finding]:
    """A checker that fails after its first finding."""
    yield from CHECKERS[2](history, expectation)
    raise KeyError("charge/7")


@pytest.mark.parametrize("broken", [raising, raising_late])
def test_a_checker_that_raises_makes_the_trial_unknown(broken: Checker) -> None:
    """It is named with its error, and the other checkers are asked all the same."""
    judgement = judge(careful().history, ALL, careful().schedule, (*CHECKERS, broken))
    assert judgement.verdict == "UNKNOWN"
    assert judgement.unknowns == (f"the checker {broken.__name__} failed: KeyError: 'charge/7'",)


@pytest.mark.parametrize("position", range(len(CHECKERS)))
def test_no_checker_may_fail_unnoticed(position: int) -> None:
    """Whichever of the nine is broken, a flawless trial is not valid any more."""
    checkers = [*CHECKERS[:position], raising, *CHECKERS[position + 1 :]]
    assert judge(careful().history, ALL, careful().schedule, checkers).verdict == "UNKNOWN"


def test_a_finding_stands_although_another_checker_raises() -> None:
    """INVALID is the worst, and what was not judged is told beside it."""
    judgement = judge(careless().history, ALL, careless().schedule, (raising, *CHECKERS))
    assert judgement.verdict == "INVALID"
    assert len(judgement.unknowns) == 1


@pytest.mark.parametrize(
    ("schedule", "missed"),
    [
        ("kill@payments.charge#2.answered / kill@50ms", "kill@50ms of attempt 2"),
        ("kill@payments.charge#3.answered", "kill@payments.charge#3.answered of attempt 1"),
        ("- / kill@payments.charge#2.answered", "kill@payments.charge#2.answered of attempt 2"),
    ],
)
def test_a_fault_that_did_not_land_makes_the_trial_unknown(schedule: str, missed: str) -> None:
    """At its own point and in its own attempt, or it proves nothing."""
    judgement = judge(careful().history, ALL, parse_schedule(schedule))
    assert judgement.verdict == "UNKNOWN"
    assert judgement.unknowns == (f"{missed} did not land",)


def test_a_kill_that_did_not_kill_makes_the_trial_unknown() -> None:
    """An attempt that was to be killed has died of signal 9."""
    events = careful().history.events
    story = Story().starts().does(ADA, BOB).killed("payments.charge#2.answered")
    cut = len(story.history.events) - 1
    wrong = Story().starts().ends(15, how="killed").history.events[-1]
    judgement = judge(History((*events[:cut], wrong, *events[cut + 1 :])), ALL, careful().schedule)
    assert judgement.verdict == "UNKNOWN"
    assert judgement.unknowns == ("an attempt that was killed did not die of signal 9",)


def test_no_evidence_makes_a_trial_unknown() -> None:
    """A task without any effect and any declared output proves nothing by ending well."""
    story = Story().starts().killed("5ms").starts().ends()
    judgement = judged(story, Expectation())
    assert judgement.verdict == "UNKNOWN"
    assert judgement.unknowns == ("no effect and no declared output: there is nothing to judge by",)
    assert judged(story.leaves({"a": "1"}), Expectation(digests={"a": "1"})).verdict == "VALID"


def test_nothing_at_all_is_unknown() -> None:
    """A history without events is no pass."""
    assert judge(History(()), ALL, Schedule()).verdict == "UNKNOWN"


def test_an_undisturbed_run_is_valid_beside_itself() -> None:
    """The survey, judged by what it taught."""
    story = undisturbed(ADA, BOB, EVE, KIM)
    assert judged(story, ALL).verdict == "VALID"


# Causes.


def test_a_restart_explains_its_duplicates() -> None:
    """One root, and each duplicate names it as its cause."""
    story = Story().starts().does(ADA, BOB, EVE).killed("payments.charge#3.answered")
    judgement = judged(story.starts().does(ADA, BOB, EVE, KIM).ends(), ALL)
    assert kinds(judgement) == ["duplicate_effect"] * 3 + ["silent_restart"]
    [root] = judgement.roots
    assert root.kind == "silent_restart"
    assert {f.cause for f in judgement.findings if f is not root} == {root.fingerprint}


def test_a_redone_step_explains_the_duplicates_of_its_attempt() -> None:
    """The step that runs again has its effects again."""
    story = Story().starts().does(ADA, BOB, EVE).killed("payments.charge#3.answered")
    judgement = judged(story.starts().does(BOB, KIM).ends(), ALL)
    assert kinds(judgement) == ["duplicate_effect", "redone_step"]
    [root] = judgement.roots
    assert root.kind == "redone_step"
    assert [f.cause for f in judgement.findings if f is not root] == [root.fingerprint]


@pytest.mark.parametrize("redone", [ADA, EVE], ids=["of-attempt-1", "of-attempt-2"])
def test_a_redone_step_explains_no_duplicate_of_another_attempt(redone: Effect) -> None:
    """What attempt 2 doubled is not the doing of what attempt 3 ran again."""
    story = (
        Story()
        .starts()
        .does(ADA)
        .applies(BOB)
        .killed("payments.charge#2.applied")
        .starts()
        .does(BOB, EVE)
        .applies(KIM)
        .killed("payments.charge#3.applied")
        .starts()
        .repeats(redone)
        .ends()
    )
    judgement = judged(story, ALL)
    assert roots(judgement) == ["duplicate_effect", "redone_step"]


def test_a_restart_explains_nothing_that_came_before_it() -> None:
    """What attempt 2 doubled is a fault of its own, although attempt 3 started over."""
    story = (
        Story()
        .starts()
        .does(ADA)
        .applies(BOB)
        .killed("payments.charge#2.applied")
        .starts()
        .does(BOB, EVE)
        .killed("payments.charge#2.answered")
        .starts()
        .repeats(ADA, BOB, EVE)
        .does(KIM)
        .ends()
    )
    judgement = judged(story, ALL)
    assert roots(judgement) == ["duplicate_effect", "silent_restart"]


def test_a_restart_explains_no_loss_and_no_wrong_value() -> None:
    """To begin again loses nothing and does not change what is asked for."""

    def restarted() -> Story:
        story = Story().starts().does(ADA, BOB).killed("payments.charge#2.answered")
        return story.starts().repeats(ADA, BOB)

    assert roots(judged(restarted().does(KIM).ends(), ALL)) == ["lost_effect", "silent_restart"]
    wrong = judged(restarted().does(charge("eve", 999), KIM).ends(), ALL)
    assert roots(wrong) == ["silent_restart", "wrong_inputs"]


def test_a_finding_without_a_witness_is_judged_like_any_other() -> None:
    """The witness is optional, for checkers of the user's own too."""

    def vague(history: History, expectation: Expectation) -> Iterator[Finding]:
        for kind in FINDING_KINDS:
            yield Finding(kind=kind, operation="", subject="", expected="", seen="", because="")

    judgement = judge(careful().history, ALL, careful().schedule, (vague,))
    assert judgement.verdict == "INVALID"
    assert len(judgement.findings) == len(FINDING_KINDS)


def test_every_finding_points_at_events_that_exist() -> None:
    """The witness of each finding is made of event numbers of its own history."""
    story = Story().starts().does(ADA, BOB, EVE).killed("payments.charge#3.answered")
    story.starts().does(BOB, charge("kim", 999)).ends(leftovers=["sleep 600"])
    judgement = judged(story, teaches(undisturbed(ADA, BOB, EVE, KIM).leaves({"a": "1"})))
    assert len(judgement.findings) >= 4
    for finding in judgement.findings:
        assert finding.witness
        assert set(finding.witness) <= set(range(len(story.history.events)))
