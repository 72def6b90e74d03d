"""Work on files alone: what is a step, when it is complete, and what is one that is done again."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from chaoskit.explore.file_work import with_file_work
from chaoskit.model.expectation import Expectation
from tests.checkers.builder import Story, expecting, judged

AT = "kill@write(later)#1"
"""Where the task is killed: before a call that is told of, and not made."""


def expected(
    outputs: Sequence[str], lines: Sequence[str], recorded: Sequence[str] = ()
) -> Expectation:
    """What an undisturbed run with these calls teaches."""
    run = Story().starts().calls(*numbered(lines)).ends().history
    known = msgspec.structs.replace(expecting(), digests=dict.fromkeys(outputs, "12"))
    return with_file_work(known, (run, run), recorded)


def numbered(lines: Sequence[str]) -> list[str]:
    """Calls with their ordinals."""
    return [f"{line}#{lines[: at + 1].count(line)}" for at, line in enumerate(lines)]


def again(known: Expectation, killed: Sequence[str], resumed: Sequence[str]) -> list[str]:
    """What is said of a trial whose first attempt came so far and whose resume did the rest."""
    story = Story().starts().calls(*numbered(killed)).killed(AT.removeprefix("kill@"))
    story.starts().calls(*numbered(resumed)).ends().leaves(known.digests)
    return [f.kind for f in judged(story, known).findings]


ROW, MARK = "write(rows.csv)", "rename(done.tmp->done)"
ROWS = (ROW, MARK, ROW, MARK, ROW, MARK)
EACH = {
    "marked": ("write(part-{n})", "write(part-{n})", "open(mark-{n})"),
    "beside": ("write({n}.tmp)", "rename({n}.tmp->{n}.txt)", "pwrite(run.db)"),
    "logged": ("write(part-{n})", "open(log)", "write(log)"),
}
PARTS, BESIDE, LOGGED = (
    tuple(call.format(n=n) for n in "123" for call in calls) for calls in EACH.values()
)
"""A record may be a file put in place, a marker for each step, a database; or it may be a log."""


@pytest.mark.parametrize(
    ("outputs", "run", "killed", "right", "wrong"),
    [
        (("rows.csv",), ROWS, 5, ROWS[4:], ROWS),
        (("part-1", "part-2", "part-3"), PARTS, 7, PARTS[6:], PARTS[3:]),
        (("1.txt", "2.txt", "3.txt"), BESIDE, 7, BESIDE[6:], BESIDE[3:]),
        (("part-1", "part-2", "part-3"), LOGGED, 4, LOGGED[3:], LOGGED),
    ],
)
def test_a_finished_output_is_not_written_again(
    outputs: Sequence[str],
    run: Sequence[str],
    killed: int,
    right: Sequence[str],
    wrong: Sequence[str],
) -> None:
    """What was written before a record, after which the task went on, is complete; the rest of it
    may be written again.
    """
    known = expected(outputs, run)
    assert again(known, run[:killed], right) == []
    assert again(known, run[:killed], wrong) in (["redone_step"], ["silent_restart"])


def test_a_torn_tail_may_be_repaired_by_writing_the_finished_part_once_more() -> None:
    """It is one piece with what follows: no record comes between."""
    known = expected(("rows.csv",), ROWS)
    assert again(known, ROWS[:5], (ROW, *ROWS[4:])) == []


@pytest.mark.parametrize(
    "run",
    [
        (ROW, ROW, ROW),  # no record
        (ROW, "write(log)", ROW, "write(log)", ROW, "write(log)"),  # a log, opened once
        # a log that is opened for each line, and an output in several pieces
        (ROW, "open(log)", "write(log)", ROW, "open(log)", "write(log)", ROW),
    ],
)
def test_what_may_be_a_log_records_nothing(run: Sequence[str]) -> None:
    """A task that writes its output from the start is right, whatever it has logged."""
    known = expected(("rows.csv",), run)
    assert known.file_work is None
    assert again(known, run[:4], run) == []


def test_a_scenario_may_say_which_files_are_records() -> None:
    """Then a log is one, and nothing else is."""
    run = (ROW, "write(log)", ROW, "write(log)", ROW, "write(log)")
    known = expected(("rows.csv",), run, ("*.log", "log"))
    assert again(known, run[:5], run) == ["silent_restart"]


def test_what_damage_took_away_is_written_again_rightly() -> None:
    """The resume found another file than the one that was finished."""
    known = expected(("rows.csv",), ROWS)
    story = Story().starts().calls(*numbered(ROWS[:5])).killed("write(later)#1")
    story.suffers("damage:torn:rows.csv").starts().calls(*numbered(ROWS)).ends()
    assert not judged(story.leaves(known.digests), known).findings


def test_nothing_is_learnt_where_runs_differ() -> None:
    """Records by the clock come at other places in each run."""
    runs = [
        Story().starts().calls(*numbered(lines)).ends().history
        for lines in (ROWS, (ROW, ROW, MARK, ROW, MARK))
    ]
    known = msgspec.structs.replace(expecting(), digests={"rows.csv": "12"})
    assert with_file_work(known, runs).file_work is None


IN_TURN = tuple(
    call
    for n in (1, 2, 3)
    for call in (f"p{n}:open(part-{n})", f"p{n}:write(part-{n})", "open(log)", "write(log)")
)
SIDE_BY_SIDE = (
    *("p1:write(part-1)", "p2:write(part-2)", "open(mark-1)"),
    *("p1:write(part-3)", "open(mark-2)", "p2:write(part-4)", "open(mark-3)"),
)
AT_ONCE = ("write(part-1)", "write(part-2)", "write(part-1)", "open(mark-1)", "open(mark-2)")


@pytest.mark.parametrize(
    ("run", "known"), [(IN_TURN, True), (SIDE_BY_SIDE, False), (AT_ONCE, False)]
)
def test_processes_that_write_one_after_the_other_are_judged_and_those_that_race_are_not(
    run: Sequence[str], known: bool
) -> None:
    """A shell that waits for each of its children is one order; what is written by turns is not."""
    outputs = [f"part-{n}" for n in (1, 2, 3, 4)]
    assert (expected(outputs, run).file_work is not None) == known
