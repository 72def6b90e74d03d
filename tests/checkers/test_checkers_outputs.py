"""What differs in the files that a task leaves, each sentence from what was stored of them."""

from __future__ import annotations

import pytest

from chaoskit.checkers.outputs import diverged_state, lost_output
from chaoskit.explore.survey import expect
from chaoskit.model.scenario import Scenario
from chaoskit.model.secrets import BLOT
from tests.checkers.builder import Story, charge, judged, teaches, undisturbed

ADA = charge("ada")


def killed() -> Story:
    """A task that was killed once, and is resumed."""
    return Story().starts().does(ADA).killed("payments.charge#1.answered").starts()


OUTPUTS = teaches(undisturbed(ADA).leaves({"a.txt": "11", "b.txt": "22"}))


def test_outputs_as_an_undisturbed_run_leaves_them_have_not_diverged() -> None:
    """The same files with the same content."""
    story = killed().ends().leaves({"b.txt": "22", "a.txt": "11"})
    assert not list(diverged_state(story.history, OUTPUTS))


@pytest.mark.parametrize(
    ("left", "because"),
    [
        ({"a.txt": "11", "b.txt": "99"}, "b.txt has other content"),
        ({"a.txt": "11"}, "b.txt is missing"),
        ({"a.txt": "11", "b.txt": "22", "c.txt": "33"}, "c.txt was never expected"),
        ({}, "a.txt is missing; b.txt is missing"),
        (
            {"a.txt": "1", "b.txt": "2", "c.txt": "3", "d.txt": "4"},
            "a.txt has other content; b.txt has other content; c.txt was never expected and 1 more",
        ),
    ],
)
def test_outputs_that_differ_have_diverged(left: dict[str, str], because: str) -> None:
    """Other content, a missing file and a file too many are told by name, three at most."""
    story = killed().ends().leaves(left)
    [found] = diverged_state(story.history, OUTPUTS)
    assert (found.kind, found.operation, found.subject) == ("diverged_state", "outputs", "outputs")
    assert found.expected == "2 outputs as an undisturbed run leaves them"
    assert found.because == because
    assert found.witness == (story.history.events[-1].index,)


def test_outputs_do_not_matter_where_no_success_is_claimed() -> None:
    """A task that refused may leave what it has."""
    story = killed().states("refused", "the inputs differ").ends(1).leaves({"a.txt": "99"})
    assert not list(diverged_state(story.history, OUTPUTS))


def test_outputs_that_no_two_runs_leave_alike_are_not_compared() -> None:
    """A log with times in it is no evidence, neither for nor against the task."""
    first = undisturbed(ADA).leaves({"report.txt": "11", "run.log": "77"})
    second = undisturbed(ADA).leaves({"report.txt": "11", "run.log": "88"})
    scenario = Scenario(command=("task",), outputs=("*",))
    expected = expect(first.history, second.history, scenario)
    story = killed().ends().leaves({"report.txt": "11", "run.log": "99"})
    assert not expected.problems
    assert not list(diverged_state(story.history, expected))


FOUR = b"ada,1\nbob,2\ncid,3\ndan,4\n"
BINARY = bytes(range(256))
LONG = b"x" * 100


@pytest.mark.parametrize(
    ("want", "have", "words"),
    [
        (FOUR, b"", "is empty: an undisturbed run leaves 24 bytes"),
        (FOUR, FOUR[:9], "is cut short: it has the first 9 of 24 bytes"),
        (FOUR, FOUR[:23], "is cut short: it has the first 23 of 24 bytes"),
        (
            FOUR,
            FOUR.replace(b"bob,2\n", b""),
            "has 1 of 4 lines lost; line 2 is 'cid,3', expected 'bob,2'",
        ),
        (
            FOUR,
            FOUR + b"dan,4\ndan,4\n",
            "has 2 repeated; line 5 is 'dan,4', expected the end",
        ),
        (
            FOUR,
            b"ada,1\nada,1\nbob,2\neve,9\ndan,4\n",
            "has 1 of 4 lines lost, 1 repeated, 1 new; line 2 is 'ada,1', expected 'bob,2'",
        ),
        (
            FOUR,
            b"bob,2\nada,1\ncid,3\ndan,4\n",
            "has its lines in another order; line 1 is 'bob,2', expected 'ada,1'",
        ),
        (FOUR, FOUR[:-6], "is cut short: it has the first 18 of 24 bytes"),
        (FOUR, FOUR + b"\n", "has 1 new; line 5 is '', expected the end"),
        (b"ada", b"ada\n", "has 4 bytes, not 3; they differ from offset 3 on"),
        (
            LONG + b"1\n",
            LONG + b"2\n",
            f"has 1 of 1 line lost, 1 new; line 1 is …'{'x' * 20}2', expected …'{'x' * 20}1'",
        ),
        (BINARY, BINARY[:99] + b"!" + BINARY[100:], "has 256 bytes; they differ from offset 99 on"),
        (BINARY, BINARY[:99], "is cut short: it has the first 99 of 256 bytes"),
        (BINARY, BINARY[1:], "has 255 bytes, not 256; they differ from offset 0 on"),
        (70_000, 69_999, "has 69,999 bytes, not 70,000"),
        (70_000, 0, "is empty: an undisturbed run leaves 70,000 bytes"),
    ],
)
def test_what_differs_is_said_of_each_output(
    want: bytes | int, have: bytes | int, words: str
) -> None:
    """Lost, cut short, by lines or by offset: what the stored content shows, and no more."""
    expected = teaches(undisturbed(ADA).writes({"a.csv": want}))
    [found] = diverged_state(killed().ends().writes({"a.csv": have}).history, expected)
    assert found.because == f"a.csv {words}"


def test_a_credential_in_a_line_that_differs_is_blotted_out() -> None:
    """Before the line is shortened: half of a secret has no shape by which it is known."""
    secret = "sk_live_" + "a1B2" * 30
    expected = teaches(undisturbed(ADA).writes({"a": f"key {secret} 1\n".encode()}))
    story = killed().ends().writes({"a": f"key {secret} 2\n".encode()})
    [found] = diverged_state(story.history, expected)
    assert f"line 1 is 'key {BLOT} 2', expected 'key {BLOT} 1'" in found.because
    assert "a1B2" not in found.because


@pytest.mark.parametrize(
    ("left", "lost"),
    [
        ({}, "missing"),
        ({"a.csv": b""}, "empty: an undisturbed run leaves 24 bytes"),
        ({"a.csv": FOUR[:7]}, "cut short: it has the first 7 of 24 bytes"),
        ({"a.csv": FOUR + FOUR}, ""),
        ({"a.csv": FOUR, "b.csv": b""}, ""),
    ],
)
def test_a_lost_output_is_a_false_success_too_and_one_flaw(
    left: dict[str, bytes], lost: str
) -> None:
    """Success was claimed without it: told below the finding that says what differs."""
    expected = teaches(undisturbed(ADA).writes({"a.csv": FOUR}))
    story = killed().ends().writes(left)
    judgement = judged(story, expected)
    below = [f for f in judgement.findings if f.cause]
    assert [f.kind for f in judgement.roots] == (
        ["diverged_state"] if left != {"a.csv": FOUR} else []
    )
    assert [f.kind for f in below] == (["false_success"] if lost else [])
    assert all(f.seen == lost and f.cause == judgement.roots[0].fingerprint for f in below)


def test_a_lost_output_of_a_task_that_refuses_is_none() -> None:
    """It claims no success."""
    expected = teaches(undisturbed(ADA).writes({"a.csv": FOUR}))
    story = killed().states("refused", "the inputs differ").ends(1).writes({})
    assert not list(lost_output(story.history, expected))
