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
    calls = [body for run in runs for _, body in run.of(CallSeen)]
    if not all(body.alone for body in calls):
        return expectation  # who else takes turns may write in another order next time
    for work in _readings(runs[0], tuple(expectation.digests), recorded):
        steps, *others = ([(p.output, p.complete) for p in pieces_of(run, work)] for run in runs)
        if any(complete for _, complete in steps) and all(other == steps for other in others):
            known = msgspec.structs.replace(work, steps=tuple(output for output, _ in steps))
            return msgspec.structs.replace(expectation, file_work=known)
    return expectation


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
