"""Two undisturbed runs, and what they teach about a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.checkers.check import judge
from chaoskit.explore.survey import expect
from chaoskit.model.effects import Effect
from chaoskit.model.events import How, TraceNoted
from chaoskit.model.expectation import Expectation
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Schedule
from chaoskit.trace import OUTSIDE
from tests.checkers.builder import Story, charge, judged, mail, row, teaches, undisturbed

PLAIN = Scenario(command=("task",))

ADA, BOB, EVE = charge("ada"), charge("bob"), charge("eve")


def surveyed(first: Story, second: Story, scenario: Scenario = PLAIN) -> Expectation:
    """What the two runs teach."""
    return expect(first.history, second.history, scenario)


def repeated(story: Story, scenario: Scenario = PLAIN) -> Expectation:
    """What a run teaches that is the same each time."""
    return surveyed(story, story, scenario)


# What is expected.


@given(st.lists(st.sampled_from([ADA, BOB, mail("ada"), mail("bob")]), max_size=8))
def test_a_survey_teaches_what_the_task_does(effects: list[Effect]) -> None:
    """Effects in order and as often as they happen, requests counted, nothing volatile."""
    story = undisturbed(*effects)
    found = repeated(story)
    assert found.effects == tuple(effects)
    assert found.order == tuple(map(found.identify, effects))
    assert dict(found.requests) == Counter(map(found.identify, effects))
    assert (found.volatile, found.problems, found.ordered) == ({}, (), True)
    assert judged(story, found).verdict == ("VALID" if effects else "UNKNOWN")


def test_the_scenario_gives_contract_identity_and_allowed_redos() -> None:
    """What only the user can know goes into the expectation unchanged."""
    scenario = Scenario(
        command=("task",),
        contract={"email.*": "at-least-once"},
        identity={"payments.charge": ["customer"]},
        redo=["warm-up"],
    )
    found = surveyed(undisturbed(charge("ada", 1)), undisturbed(charge("ada", 2)), scenario)
    assert found.contract.guarantee("email.send") == "at-least-once"
    assert found.contract.guarantee("payments.charge") == "exactly-once"
    assert found.redo_allowed == ("warm-up",)
    assert found.order[0].fields == (("customer", "ada"),)
    assert found.problems == ()


def test_steps_are_taught_once_each_in_order() -> None:
    """As the task first reports them."""
    story = Story().starts().step("one", "started", "recorded").step("two", "started", "recorded")
    assert repeated(story.does(ADA).ends()).steps == ("one", "two")


def test_the_slower_run_is_the_measure_of_time() -> None:
    """A time limit that follows from it is not too tight for either."""
    slow, fast = (Story().starts().does(ADA).ends(seconds=s) for s in (2.5, 1.5))
    assert surveyed(fast, slow).seconds == surveyed(slow, fast).seconds == 2.5


# Volatile fields.


def made(operation: str, who: str, fields: dict[str, Any]) -> Effect:
    """A charge or a mail with these fields."""
    if operation == "email.send":
        return mail(who, **fields)
    return charge(who, **fields)


@st.composite
def two_runs(draw: st.DrawFn) -> tuple[list[Effect], list[Effect], dict[str, set[str]]]:
    """The same effects twice, but for the noisy fields, which are another text each time."""
    names = ["at", "id", "note", "trace"]
    noisy = {
        "payments.charge": draw(st.sets(st.sampled_from(names))),
        "email.send": draw(st.sets(st.sampled_from(names))),
    }
    plain = draw(
        st.lists(
            st.tuples(
                st.sampled_from(sorted(noisy)),
                st.sampled_from(["ada", "bob"]),
                st.dictionaries(st.sampled_from(names), st.text(max_size=3)),
            ),
            min_size=1,
            max_size=6,
        )
    )
    runs: list[list[Effect]] = [[], []]
    for number, (operation, who, fields) in enumerate(plain):
        drop = noisy[operation]
        for run, effects in enumerate(runs):
            noise = dict.fromkeys(drop, f"run {run}, effect {number}")
            effects.append(made(operation, who, fields | noise))
    present = {effect.operation for effect in runs[0]}
    return runs[0], runs[1], {op: drop for op, drop in noisy.items() if drop and op in present}


@given(two_runs())
def test_fields_that_differ_are_volatile_and_nothing_else_is(
    runs: tuple[list[Effect], list[Effect], dict[str, set[str]]],
) -> None:
    """Per operation: exactly the noisy fields, and without them both runs are the same."""
    first, second, noisy = runs
    found = surveyed(undisturbed(*first), undisturbed(*second))
    assert {op: set(fields) for op, fields in found.volatile.items()} == noisy
    assert found.problems == ()
    assert found.effects == tuple(first)
    assert [found.identify(e) for e in first] == [found.identify(e) for e in second]
    assert all(list(fields) == sorted(fields) for fields in found.volatile.values())


def test_a_field_that_only_one_run_has_is_volatile() -> None:
    """Present or absent is a difference too."""
    found = surveyed(undisturbed(charge("ada", retry="1")), undisturbed(charge("ada")))
    assert found.volatile == {"payments.charge": ("retry",)}
    assert found.problems == ()


def test_a_field_that_only_the_request_shows_is_volatile_too() -> None:
    """What is asked for and what is booked need not have the same fields."""

    def run(stamp: str) -> Story:
        return Story().starts().asks(charge("ada", stamp=stamp)).books(ADA).ends()

    found = surveyed(run("10:00"), run("10:01"))
    assert found.volatile == {"payments.charge": ("stamp",)}
    assert dict(found.requests) == {found.identify(ADA): 1}


def test_the_same_values_in_another_order_are_not_volatile() -> None:
    """A task that shuffles its list does the same things."""
    found = surveyed(undisturbed(ADA, BOB), undisturbed(BOB, ADA))
    assert (found.volatile, found.problems) == ({}, ())
    assert not found.ordered


# A survey that does not repeat.


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ([ADA, BOB], [ADA], "1 only in the first, 0 only in the second (payments.charge)"),
        ([], [ADA, mail("ada")], "0 only in the first, 2 only in the second (email.send, pay"),
        ([ADA, ADA], [ADA], "1 only in the first, 0 only in the second (payments.charge)"),
    ],
)
def test_other_effects_in_the_second_run_are_a_problem(
    first: Sequence[Effect], second: Sequence[Effect], words: str
) -> None:
    """The sentence counts them, names their operations and says what to do."""
    found = surveyed(undisturbed(*first), undisturbed(*second))
    [problem] = found.problems
    assert problem.startswith("two undisturbed runs do not have the same effects: ")
    assert words in problem
    assert "CHAOSKIT_SEED" in problem
    assert "identity=" in problem
    assert found.volatile == {}


def test_values_that_change_places_are_a_problem() -> None:
    """No field is volatile by itself, and yet the effects are others."""
    found = surveyed(
        undisturbed(charge("ada", 1), charge("bob", 2)),
        undisturbed(charge("ada", 2), charge("bob", 1)),
    )
    [problem] = found.problems
    assert "2 only in the first, 2 only in the second" in problem


@pytest.mark.parametrize(
    ("how", "code", "says", "words"),
    [
        (
            "exit",
            3,
            "Traceback\n  KeyError: 'total'\n\n",
            "ended with status 3 (KeyError: 'total')",
        ),
        ("exit", 1, "", "ended with status 1"),
        ("signal", 11, "", "was ended by signal 11"),
        ("timeout", 9, "", "did not end within 300 s"),
        ("not-started", 127, "no such file: node", "could not be started (no such file: node)"),
    ],
)
def test_a_task_that_fails_undisturbed_is_a_problem(
    how: How, code: int, says: str, words: str
) -> None:
    """How it ended and its last words, told once although both runs failed alike."""
    story = Story().starts().does(ADA).ends(code, how, seconds=300, says=says)
    assert repeated(story).problems == (f"the task fails without any fault: it {words}",)


def test_a_task_that_succeeds_only_when_it_is_resumed_is_a_problem() -> None:
    """An undisturbed run has one attempt."""
    story = Story().starts().does(ADA).ends(1).starts().does(BOB).ends()
    assert repeated(story).problems == ("the task fails without any fault: it ended with status 1",)


def test_two_different_problems_are_both_told() -> None:
    """A survey that fails and does not repeat says so in two sentences."""
    found = surveyed(undisturbed(ADA, BOB), Story().starts().does(ADA).ends(1))
    assert len(found.problems) == 2


def outside(story: Story, *paths: str) -> Story:
    """The tracer noted changes of these files before the run ended."""
    for path in paths:
        story._add(TraceNoted(1, OUTSIDE, path))
    return story.ends()


def test_a_second_run_that_does_nothing_is_told_where_the_state_is() -> None:
    """The files outside of the work folder that the tracer saw, and not that chance decides."""
    first = outside(
        Story().starts().does(ADA, BOB), "/home/x", "/home/x/.job/d1", "/home/x/.job/d2"
    )
    [problem] = surveyed(first, undisturbed()).problems
    assert "the second baseline run did nothing" in problem
    assert "left its state at /home/x/.job/d1, /home/x/.job/d2;" in problem
    assert "CHAOSKIT_SEED" not in problem
    [untraced] = surveyed(undisturbed(ADA), undisturbed()).problems
    assert "did nothing" in untraced
    assert "where no traced call shows it" in untraced


def test_runs_that_differ_name_the_files_outside_before_chance() -> None:
    """Where there are such files; else chance alone is left."""
    first = outside(Story().starts().does(ADA, BOB), "/a", "/b", "/c", "/d", "/e")
    [problem] = surveyed(first, undisturbed(ADA)).problems
    assert "leaves state at /a, /b, /c and 2 more" in problem
    assert problem.index("{state}") < problem.index("CHAOSKIT_SEED")
    [chance] = surveyed(undisturbed(ADA, BOB), undisturbed(ADA)).problems
    assert "{state}" not in chance


# Order.


def test_requests_that_overlap_have_no_order() -> None:
    """In either run: where two are open at once, a successor proves nothing."""
    alone, side_by_side = undisturbed(ADA, BOB), Story().starts().together(ADA, BOB).ends()
    assert repeated(alone).ordered
    assert not repeated(side_by_side).ordered
    assert not surveyed(alone, side_by_side).ordered
    assert not surveyed(side_by_side, alone).ordered


def test_requests_that_are_sent_at_once_are_known_by_any_run() -> None:
    """They keep their order, and one run that shows them is enough."""
    alone, at_once = undisturbed(ADA, BOB, EVE), Story().starts().at_once(ADA, BOB).does(EVE).ends()
    assert repeated(alone).early == ()
    for found in (surveyed(alone, at_once), surveyed(at_once, alone)):
        assert (found.early, found.ordered) == ((found.identify(BOB),), True)


def test_a_request_without_an_answer_overlaps_with_the_next() -> None:
    """It is still open when the next one comes."""
    assert not repeated(Story().starts().applies(ADA).does(BOB).ends()).ordered


def test_a_lost_answer_closes_its_request() -> None:
    """A retry after a lost answer is one after the other."""
    keyed = charge("ada", key="k1")
    assert repeated(Story().starts().loses(keyed).repeats(keyed).ends()).ordered


@pytest.mark.parametrize(
    ("story", "first"),
    [
        (Story().starts().calls("open(d1)#1").does(ADA).calls("open(d2)#1").does(BOB), True),
        (Story().starts().calls("open(done)#1").does(ADA), True),
        (Story().starts().calls("write(log)#1").does(ADA, BOB), True),
        (Story().starts().does(ADA).calls("open(d1)#1").does(BOB), False),
        (Story().starts().does(ADA).calls("open(d1)#1").does(BOB).calls("open(d2)#1"), False),
        (Story().starts().calls("write(log)#1").does(ADA).calls("write(log)#2"), False),
        (Story().starts().calls("open(lock)#1").does(ADA).calls("open(d1)#1").does(BOB), False),
        (Story().starts().calls("connect(payments)#1").does(ADA), False),
        (Story().starts().calls("write(database:database.sqlite)#1").does(ADA), False),
        (Story().starts().does(ADA, BOB), False),
    ],
)
def test_records_that_come_first_are_known_by_their_files(story: Story, first: bool) -> None:
    """The same files before the first effect and between the others, and none after the last."""
    assert repeated(story.ends()).record_first is first


def test_effects_beside_which_something_is_left_without_a_sync_are_known() -> None:
    """What was written before or after them, up to the next one; a sync settles it."""
    story = Story().starts().calls("open(k1)#1", "fsync(k1)#1").does(ADA).calls("open(k2)#1")
    found = repeated(story.does(BOB).calls("open(d)#1", "fsync(.)#1").does(EVE).ends())
    assert found.unsynced == (found.identify(ADA), found.identify(BOB))
    assert repeated(undisturbed(ADA, BOB)).unsynced == ()


# What a service swallowed.


def test_an_identical_effect_that_was_swallowed_is_owed() -> None:
    """Two charges with one key, though nothing had gone wrong in between: two are expected, and
    the undisturbed run itself has lost one of them.
    """
    keyed = charge("ada", key="hash-of-ada")
    story = Story().starts().does(keyed).repeats(keyed).does(BOB).ends()
    found = repeated(story)
    assert found.counts[found.identify(keyed)] == 2
    assert found.problems == ()
    judgement = judge(story.history, found, Schedule())
    assert [f.kind for f in judgement.findings] == ["lost_effect"]


@pytest.mark.parametrize(
    "story",
    [
        Story().starts().loses(charge("ada", key="k1")).repeats(charge("ada", key="k1")).ends(),
        Story().starts().applies(charge("ada", key="k1")).repeats(charge("ada", key="k1")).ends(),
        Story()
        .starts()
        .books(charge("ada", key="k1"))
        .fails(charge("ada", key="k1"), 400)
        .repeats(charge("ada", key="k1"))
        .ends(),
    ],
    ids=["lost", "unanswered", "failed-after-commit"],
)
def test_a_retry_of_an_unanswered_request_is_owed_nothing(story: Story) -> None:
    """The task could not know that it was done, and asked again with the same key, as it should."""
    found = repeated(story)
    assert list(found.counts.values()) == [1]
    assert judge(story.history, found, Schedule()).findings == ()


def test_a_repeat_after_the_retry_was_answered_is_owed() -> None:
    """Once the answer was there, asking again with the same key means another effect."""
    keyed = charge("ada", key="k1")
    story = Story().starts().loses(keyed).repeats(keyed, keyed).ends()
    assert list(repeated(story).counts.values()) == [2]


def test_the_keys_of_one_service_say_nothing_of_another() -> None:
    """A charge and a mail of one order share their key: a lost answer is not owed a second mail."""
    paid, sent = charge("ada", key="order-7"), mail("ada", key="order-7")
    story = Story().starts().does(paid).loses(sent).repeats(sent).ends()
    found = repeated(story)
    assert list(found.counts.values()) == [1, 1]
    assert judge(story.history, found, Schedule()).findings == ()


# Outputs.

FILES = Scenario(command=("task",), outputs=("*.txt",))


def test_outputs_that_stay_the_same_are_expected() -> None:
    """By the digest of their content."""
    found = repeated(undisturbed(ADA).leaves({"a.txt": "11", "b.txt": "22"}), FILES)
    assert found.digests == {"a.txt": "11", "b.txt": "22"}
    assert (found.volatile, found.problems) == ({}, ())


def test_outputs_that_differ_are_volatile() -> None:
    """Other content, or there in one run only; the rest is compared all the same."""
    found = surveyed(
        undisturbed(ADA).leaves({"a.txt": "11", "b.txt": "22", "c.txt": "33"}),
        undisturbed(ADA).leaves({"a.txt": "11", "b.txt": "99"}),
        FILES,
    )
    assert found.digests == {"a.txt": "11"}
    assert found.volatile == {"outputs": ("b.txt", "c.txt")}
    assert found.problems == ()


@pytest.mark.parametrize(("one", "two"), [({}, {}), ({"a.txt": "1"}, {"a.txt": "2"})])
def test_outputs_that_are_nowhere_the_same_are_a_problem(
    one: dict[str, str], two: dict[str, str]
) -> None:
    """A pattern that matches nothing stable would compare nothing and pass."""
    found = surveyed(undisturbed(ADA).leaves(one), undisturbed(ADA).leaves(two), FILES)
    assert found.problems == (
        "outputs=['*.txt'] matched no file that stays the same: nothing to compare",
    )


def test_rows_that_no_request_carries_are_expected_too() -> None:
    """A database's effects count like any others, and no request is expected for them."""
    found = repeated(Story().starts().does(ADA).books(row("ada"), row("ada")).ends())
    assert sorted(found.counts.values()) == [1, 2]
    assert dict(found.requests) == {found.identify(ADA): 1}


def test_the_literal_expectations_of_the_checkers_are_those_of_a_survey() -> None:
    """What the tests of the checkers write down is what a survey of the same task teaches."""
    story = Story().starts().step("one", "started", "recorded").does(ADA, BOB, ADA).looks("a", "b")
    story.books(row("ada")).ends().leaves({"a.txt": "11"})
    literal, found = teaches(story), repeated(story, FILES)
    assert all(getattr(literal, n) == getattr(found, n) for n in Expectation.__struct_fields__)
