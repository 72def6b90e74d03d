"""What the files of a task without services are for, as its undisturbed runs show it.

A declared output is work. A file is a record where it changes again and again: it is put in its
place more than once, written to in the middle, removed, or is one of a sort of which there are
several. Where there is none of these, one that is opened several times may be a record or a log,
so that only outputs are judged that are written in one go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from itertools import combinations

import msgspec

from chaoskit.model.events import CallSeen
from chaoskit.model.expectation import Expectation
from chaoskit.model.file_work import MOVES, Change, FileWork, change_of, pieces_of, sort_of
from chaoskit.model.history import History


def with_file_work(
    expectation: Expectation, runs: Sequence[History], recorded: Sequence[str] = ()
) -> Expectation:
    """``expectation`` with what ``runs`` teach of work on files; nothing where there is other work.

    Args:
        expectation: what the same runs taught before.
        runs: undisturbed ones, with the names that points keep.
        recorded: patterns of the files that the scenario says are records.
    """
    if expectation.order or expectation.steps or not expectation.digests or expectation.problems:
        return expectation
    if not all(map(_one_by_one, runs)):
        return expectation
    for work in _readings(runs[0], tuple(expectation.digests), recorded):
        steps, *others = ([(p.output, p.complete) for p in pieces_of(run, work)] for run in runs)
        again = all(other == steps for other in others) and _in_turn(runs[0], work)
        if again and any(complete for _, complete in steps):
            known = msgspec.structs.replace(work, steps=tuple(output for output, _ in steps))
            return msgspec.structs.replace(expectation, file_work=known)
    return expectation


def _one_by_one(run: History) -> bool:
    """Whether no two processes change files by turns, but for one that waits for another."""
    spans: dict[str, tuple[int, int]] = {}
    for index, body in run.of(CallSeen):
        if (change := change_of(body)) is not None:
            first, _ = spans.get(change.call.who, (index, index))
            spans[change.call.who] = first, index
    found = sorted((first, last, who) for who, (first, last) in spans.items())
    return not any(
        before[1] > after[0] and not _waits(before[2], after[2])
        for before, after in combinations(found, 2)
    )


def _waits(one: str, other: str) -> bool:
    """Whether one of two processes descends from the other."""
    short, long = sorted((one, other), key=len)
    return short == "" or long.startswith(f"{short}.")


def _in_turn(run: History, work: FileWork) -> bool:
    """Whether each output is written without a break until the next record: what is written to two
    at once is complete at another time in each run.
    """
    left: set[str] = set()
    last = ""
    for _, body in run.of(CallSeen):
        change = change_of(body)
        if change is None:
            continue
        if change.file in work.outputs:
            if change.file in left:
                return False
            if last not in ("", change.file):
                left.add(last)
            last = change.file
        elif sort_of(change.file) in work.records:
            left, last = set(), ""
    return True


def _readings(run: History, declared: Sequence[str], recorded: Sequence[str]) -> Iterable[FileWork]:
    """What the files may be for, the more certain reading first."""
    changes = [change for _, body in run.of(CallSeen) if (change := change_of(body)) is not None]
    placed = Counter(change.file for change in changes if change.source)
    moved = {change.file for change in changes if change.call.call in MOVES}
    outputs = tuple(name for name in declared if name in moved and placed[name] < 2)
    others = [change for change in changes if change.file not in outputs]
    beside = {sort_of(c.source) for c in changes if c.source and c.file in outputs}
    sources = {sort_of(c.source) for c in changes if c.source}
    sorts = {sort_of(change.file) for change in others} - sources
    if recorded:
        named = {c.file for c in others if any(fnmatchcase(c.file, p) for p in recorded)}
        yield FileWork(outputs, tuple(beside), tuple(map(sort_of, named)))
        return
    sure = {sort for sort in sorts if _is_a_record(sort, others)}
    yield FileWork(outputs, tuple(beside), tuple(sure))
    opened = Counter(change.file for change in others if change.call.call in {"open", "unlink"})
    perhaps = {sort_of(name) for name, times in opened.items() if times > 1}
    work = FileWork(outputs, tuple(beside), tuple(sure | perhaps & sorts))
    often = Counter(piece.output for piece in pieces_of(run, work))
    in_one_go = tuple(name for name in outputs if often[name] == 1)
    yield msgspec.structs.replace(work, outputs=in_one_go)


def _is_a_record(sort: str, changes: Sequence[Change]) -> bool:
    """Whether files of a sort are put in place more than once, written to in the middle, or
    several.
    """
    mine = [change for change in changes if sort_of(change.file) == sort]
    return (
        sum(bool(change.source) for change in mine) > 1
        or any(change.call.call.startswith("pwrite") for change in mine)
        or len({change.file for change in mine}) > 1
    )
