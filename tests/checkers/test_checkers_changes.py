"""What a task may do after a change, after a cancel, and after somebody has taken its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.checkers.changes import (
    excused,
    needless_refusal,
    resurrected,
    stale_world,
    stale_writer,
)
from chaoskit.checkers.check import judge
from chaoskit.model.behaviours import KINDS
from chaoskit.model.changes import RIGHTS
from chaoskit.model.effects import Effect
from chaoskit.model.expectation import Expectation, Terms
from chaoskit.model.findings import Finding
from chaoskit.model.schedule import parse_schedule
from tests.checkers.builder import Story, charge, judged, mail, row, teaches, undisturbed

EFFECTS = [charge("ada"), charge("bob"), mail("ada"), mail("bob")]
FIRST, SECOND, MAIL, LAST = EFFECTS
POINT = "payments.charge#1.answered"


def wanted(right: str = "go-on", *matters: str, finding: str = "stale_world") -> Expectation:
    """Four effects, and a change after which ``right`` is right."""
    terms = Terms(right, matters or ("*",), finding)
    return teaches(undisturbed(*EFFECTS), changes={"price": terms})


def changed(*more: str) -> Story:
    """The first effect, a kill, and a resume after the change and ``more`` faults."""
    story = Story().starts().does(FIRST).killed(POINT)
    return story.suffers("change:price", *more).starts()


def kinds(story: Story, expectation: Expectation) -> list[str]:
    """What is found by all checkers together."""
    return sorted(finding.kind for finding in judged(story, expectation).findings)


# stale_world.


def test_an_effect_on_terms_that_no_longer_hold_is_found() -> None:
    """A task that goes on where it should refuse shows that and nothing else."""
    story = changed().does(SECOND, MAIL, LAST).ends()
    (finding,) = judged(story, wanted("refuse")).findings
    assert (finding.kind, finding.operation, finding.subject) == (
        "stale_world",
        "payments.charge",
        "price",
    )
    assert finding.seen.startswith("3 times")
    assert [type(story.history.events[i].body).__name__ for i in finding.witness] == [
        "FaultLanded",
        *["EffectApplied"] * 3,
    ]


def test_the_change_names_its_finding() -> None:
    """Other inputs are not another world: the scenario says which kind it is."""
    story = changed().does(SECOND, MAIL, LAST).ends()
    assert kinds(story, wanted("refuse", finding="wrong_inputs")) == ["wrong_inputs"]


@pytest.mark.parametrize("end", ["refused", "unknown"])
def test_a_refusal_or_an_unknown_outcome_is_right(end: str) -> None:
    """Both stop before anything is done on the old terms."""
    story = changed().states(end, "the price has changed", "step").ends(1)  # type: ignore[arg-type]
    assert kinds(story, wanted("refuse")) == []


def test_only_what_matters_must_not_happen() -> None:
    """A mail that says so may go out where only payments depend on the change."""
    story = changed().does(MAIL).states("refused", "the price").ends(1)
    assert kinds(story, wanted("refuse", "payments.*")) == []
    assert kinds(story, wanted("refuse", "email.*")) == ["stale_world"]


@pytest.mark.parametrize("right", ["refuse", "stop", "replan"])
def test_what_was_under_way_before_the_change_is_excused(right: str) -> None:
    """A request of the attempt before that lands late is none of the resume's doing."""
    story = Story().starts().does(FIRST).asks(SECOND).killed("payments.charge#2.received")
    story.suffers("change:price").starts().lands(SECOND, attempt=1)
    story.states("refused", "the price").ends(1)
    assert kinds(story, wanted(right)) == []


def test_what_happened_before_the_change_is_excused() -> None:
    """The attempts before it knew another world."""
    story = Story().starts().does(FIRST).killed(POINT).starts().does(SECOND)
    story.killed("payments.charge#1.answered").suffers("change:price").starts()
    assert kinds(story.states("refused", "price").ends(1), wanted("refuse")) == []


def test_a_new_plan_has_no_effect_of_the_old_one() -> None:
    """After a change that asks for a new plan other effects are right, the old ones are not; what
    is missing of the old plan, and what is new, is no finding.
    """
    right = changed().does(charge("bob", 130), mail("ada", "new"), mail("bob", "new")).ends()
    assert kinds(right, wanted("replan")) == []
    half = changed().does(SECOND, mail("ada", "new"), mail("bob", "new")).ends()
    assert kinds(half, wanted("replan")) == ["stale_world"]


def test_a_change_that_did_not_take_place_changes_nothing() -> None:
    """Without it the task goes on, and an unknown name is nobody's."""
    story = Story().starts().does(FIRST).killed(POINT).starts().does(SECOND, MAIL, LAST).ends()
    for right in RIGHTS:
        assert kinds(story, wanted(right)) == []
    other = Story().starts().does(FIRST).killed(POINT).suffers("change:other").starts()
    assert not list(stale_world(other.does(SECOND).ends().history, wanted("refuse")))


# resurrected.


def test_a_cancelled_task_that_goes_on_is_found() -> None:
    """Any effect after the cancel, in any later attempt; what a correct task leaves is no loss."""
    story = changed().ends(1).starts().does(SECOND, MAIL, LAST).ends()
    assert kinds(story, wanted("stop")) == ["resurrected"]


@pytest.mark.parametrize("code", [0, 1])
def test_a_cancelled_task_that_stops_is_right(code: int) -> None:
    """Whether it calls that a success or a refusal."""
    story = changed()
    if code:
        story.states("refused", "cancelled")
    assert kinds(story.ends(code), wanted("stop")) == []


# needless_refusal.


def refusing(*more: str, end: str = "refused") -> Story:
    """A resume that does nothing and says why."""
    return changed(*more).states(end, "the file differs").ends(1)  # type: ignore[arg-type]


def test_a_refusal_for_nothing_is_found() -> None:
    """Where nothing that is left to do depends on the change, to refuse strands the task."""
    (finding,) = judged(refusing(), wanted("go-on")).findings
    assert (finding.kind, finding.subject) == ("needless_refusal", "price")
    assert finding.because == "the file differs"


OTHER_REASONS = [
    "clock:+7d",
    "damage:torn:run.db",
    "resumers:2",
    *(
        f"{kind}{amount}@payments.charge#2"
        for kind, amount in {
            **dict.fromkeys(KINDS, ""),
            "late-reply": ":5ms",
            "commit-late": ":1",
            "down": ":1",
            "lag": ":1",
            "reject": ":503",
        }.items()
    ),
]


@pytest.mark.parametrize("reason", OTHER_REASONS)
def test_where_there_may_be_another_reason_nothing_is_said(reason: str) -> None:
    """Damage, another clock, others at work, and services that misbehave can be refused."""
    story = changed(reason)
    if "@" in reason:
        story.fails(SECOND, 503)
    assert kinds(story.states("refused", "no").ends(1), wanted("go-on")) == []


def test_a_behaviour_whose_request_did_not_come_is_no_reason() -> None:
    """The service had no occasion to misbehave."""
    story = refusing("reject:503@payments.charge#2")
    assert kinds(story, wanted("go-on")) == ["needless_refusal"]


@pytest.mark.parametrize("fault", ["pause@here#1", "twin@here#1"])
def test_a_second_runner_is_another_reason(fault: str) -> None:
    """A task that finds somebody else at work may refuse."""
    story = Story().starts().does(FIRST).suffers(fault).killed(POINT)
    story.suffers("change:price").starts().states("refused", "in use").ends(1)
    assert not list(needless_refusal(story.history, wanted("go-on")))


def test_a_loss_of_power_is_another_reason() -> None:
    """The checkpoint may be torn."""
    story = Story().starts().does(FIRST).suffers("power:drop@write(a)#1+after")
    story.ends(9, how="killed").suffers("change:price").starts()
    story.states("refused", "torn").ends(1)
    assert not list(needless_refusal(story.history, wanted("go-on")))


@pytest.mark.parametrize("right", [right for right in RIGHTS if right != "go-on"])
def test_other_changes_may_be_refused(right: str) -> None:
    """Only where it is right to go on is a refusal wrong."""
    assert "needless_refusal" not in kinds(refusing(), wanted(right))


def test_an_unknown_outcome_is_no_refusal() -> None:
    """It was there before the change, and must be told."""
    assert not list(needless_refusal(refusing(end="unknown").history, wanted("go-on")))


def test_a_refusal_without_a_change_is_no_needless_one() -> None:
    """It may be for any reason that the harness does not know."""
    story = Story().starts().killed(POINT).starts().states("refused", "no").ends(1)
    assert not list(needless_refusal(story.history, wanted("go-on")))


def test_who_goes_on_shows_nothing() -> None:
    """A change that concerns nothing is as no change."""
    story = changed().does(SECOND, MAIL, LAST).ends()
    assert kinds(story, wanted("go-on")) == kinds(story, wanted("either")) == []


# stale_writer.


def paused(*by_the_first: Effect) -> Story:
    """An attempt that did something, and is paused while the next one begins."""
    return Story().starts().does(*by_the_first).suffers("pause@here#1").starts()


def test_a_zombie_that_goes_on_is_found() -> None:
    """What it does after its successor has done everything is its fault, and so are the repeats."""
    story = paused(FIRST).does(SECOND, MAIL, LAST).ends().wakes(1).does(SECOND, MAIL, LAST).ends()
    findings = judged(story, wanted()).findings
    (root,) = [finding for finding in findings if not finding.cause]
    assert (root.kind, root.subject) == ("stale_writer", "paused runner")
    assert root.seen.startswith("3 times")
    assert {f.kind for f in findings if f.cause} == {"duplicate_effect"}


def test_a_zombie_that_notices_is_right() -> None:
    """It ends, or what it asks for is refused, or answered as before."""
    for way in ("ends", "fails", "repeats"):
        story = paused(FIRST).does(SECOND, MAIL, LAST).ends().wakes(1)
        if way == "fails":
            story.fails(SECOND, 412)
        elif way == "repeats":
            story.repeats(SECOND)
        assert kinds(story.ends(1), wanted()) == [], way


def test_a_first_one_whose_successor_refused_may_go_on() -> None:
    """It still owns the run; and the refusal is right, too."""
    story = paused(FIRST).states("refused", "somebody is at work").ends(1).wakes(1)
    assert kinds(story.does(SECOND, MAIL, LAST).ends(), wanted()) == []


def test_what_it_had_asked_for_before_is_excused() -> None:
    """A request that was in flight at the pause is done when its service comes to it."""
    story = Story().starts().asks(FIRST).suffers("pause@here#1").starts()
    story.lands(FIRST, attempt=1)
    told = story.does(SECOND, MAIL, LAST).ends().wakes(1).ends(1)
    assert not list(stale_writer(told.history, wanted()))


def test_a_successor_that_recorded_a_step_has_gone_on() -> None:
    """An effect is not the only sign of it: a record in its name is one."""
    story = paused(FIRST).step("two", "started", "recorded").ends(1).wakes(1).does(SECOND).ends(1)
    assert [f.kind for f in stale_writer(story.history, wanted())] == ["stale_writer"]


def test_rows_that_no_request_carried_are_not_blamed_on_anybody() -> None:
    """A database's books are read when both are over: whose they are is not known."""
    story = paused(FIRST).does(SECOND).ends().wakes(1).books(row("ada")).ends()
    assert not list(stale_writer(story.history, wanted()))


def test_without_a_successor_nobody_is_stale() -> None:
    """A pause alone proves nothing."""
    story = Story().starts().suffers("pause@here#1").does(FIRST).ends()
    assert not list(stale_writer(story.history, wanted()))


def test_a_loss_is_blamed_on_who_claimed_success() -> None:
    """The successor did, and not the paused one that ended after it."""
    story = paused(FIRST).does(SECOND, LAST).ends().wakes(1).ends(1)
    (finding,) = judged(story, wanted()).findings
    assert finding.kind == "lost_effect"
    assert finding.because.startswith("attempt 2 ended with success")


def test_what_a_zombie_finishes_was_not_complete_when_its_successor_began() -> None:
    """A step that the first one completes after its pause is no step that the second one redid."""
    story = paused().step("one", "started").ends(1).wakes(1)
    story.step("one", "started", "recorded").does(*EFFECTS).ends()
    assert kinds(story, teaches(undisturbed(*EFFECTS).step("one", "started"))) == []


# Everything together.


@given(
    st.sampled_from(RIGHTS),
    st.integers(0, 3),
    st.sampled_from(["goes on", "refuses"]),
)
def test_each_right_is_told_from_its_opposite(right: str, done: int, does: str) -> None:
    """A task that goes on is wrong where it must not, one that refuses where it must go on; what
    had been done before the change plays no part.
    """
    story = Story().starts().does(*EFFECTS[:done]).killed("here#1").suffers("change:price").starts()
    if does == "goes on":
        story.does(*EFFECTS[done:]).ends()
    else:
        story.states("refused", "changed").ends(1)
    expected = {
        ("refuse", "goes on"): ["stale_world"],
        ("replan", "goes on"): ["stale_world"],
        ("stop", "goes on"): ["resurrected"],
        ("go-on", "refuses"): ["needless_refusal"],
    }
    assert kinds(story, wanted(right)) == expected.get((right, does), [])


@pytest.mark.parametrize(
    ("right", "kind", "operation", "is_excused"),
    [
        ("replan", "lost_effect", "payments.charge", True),
        ("replan", "lost_effect", "email.send", False),
        ("replan", "wrong_inputs", "payments.charge", True),
        ("replan", "duplicate_effect", "payments.charge", False),
        ("replan", "diverged_state", "outputs", True),
        ("stop", "false_success", "payments.charge", True),
        ("stop", "diverged_state", "outputs", True),
        ("stop", "false_success", "outputs", True),
        ("stop", "wrong_inputs", "payments.charge", False),
        ("refuse", "false_success", "payments.charge", False),
        ("go-on", "lost_effect", "payments.charge", False),
        ("either", "diverged_state", "outputs", False),
    ],
)
def test_only_what_a_change_makes_right_is_excused(
    right: str, kind: str, operation: str, *, is_excused: bool
) -> None:
    """A new plan has other effects and files, a cancelled task has less; nothing else is excused,
    and only of what matters.
    """
    finding = Finding(kind=kind, operation=operation, subject="", expected="", seen="", because="")
    history = changed().ends().history
    assert excused(finding, history, wanted(right, "payments.*")) is is_excused
    before = Story().starts().ends().history
    assert not excused(finding, before, wanted(right, "payments.*"))


def test_each_of_the_four_has_its_diagnosis() -> None:
    """A finding without a reason helps nobody."""
    stories = [
        (changed().does(SECOND).ends(1), wanted("refuse")),
        (changed().does(SECOND).ends(1), wanted("stop")),
        (refusing(), wanted("go-on")),
        (paused(FIRST).does(SECOND).ends().wakes(1).does(SECOND).ends(), wanted()),
    ]
    named = {"stale_world", "resurrected", "needless_refusal", "stale_writer"}
    for story, expectation in stories:
        found = [f for f in judged(story, expectation).findings if f.kind in named]
        assert found
        assert all(f.diagnosis is not None and f.diagnosis.mend for f in found)
    assert not list(resurrected(changed().history, wanted("stop")))


@pytest.mark.parametrize(("after", "said"), [("email.send", True), ("payments.charge", False)])
def test_a_change_before_its_step_says_so(after: str, said: bool) -> None:
    """Where it did not land because it came too early, the reason is told; else it did not land."""
    story = Story().starts().does(charge("ada")).killed("payments.charge#1.answered").starts()
    history = story.does(mail("ada")).ends().history
    terms = Terms("go-on", after=after)
    expectation = teaches(undisturbed(charge("ada"), mail("ada")), changes={"price": terms})
    asked = parse_schedule("kill@payments.charge#1.answered / change:price")
    judgement = judge(history, expectation, asked)
    why = ": email.send (its after=) was not done before; kill the task later" if said else ""
    assert judgement.unknowns == (f"change:price of attempt 2 did not land{why}",)
