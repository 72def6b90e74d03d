"""redone_step and silent_restart: finished work that was done again, deduped or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from chaoskit.checkers.comparison import counted, in_words, subject
from chaoskit.checkers.older import OlderCopies
from chaoskit.checkers.progress import progress
from chaoskit.checkers.work import BY_CHILD, Progress, Redo, Which, Work
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Finding
from chaoskit.model.history import History


def redone_step(history: History, expectation: Expectation) -> Iterator[Finding]:
    """Steps that were complete and were run again, without the whole task starting over."""
    made, older = progress(history, expectation), OlderCopies.of(history)
    restarts = _restarts(history, made, older)
    known: set[Which] = set()
    for redo in made.redone:
        again = redo.again
        if redo.attempt in restarts or again.which in known:
            continue
        known.add(again.which)
        words = again.name
        if again.identity is not None:
            words = f"{again.name} ({in_words(again.identity, expectation)})"
        yield Finding(
            kind="redone_step",
            operation=again.name,
            subject=subject(again.identity) if again.identity is not None else again.name,
            expected=f"{words}: not again once it was complete",
            seen=f"run again by {'the same ' * redo.within}attempt {redo.attempt}",
            because=f"{_complete(redo.first)}, and event {again.index} runs it again",
            witness=(redo.first.index, again.index),
        )


def silent_restart(history: History, expectation: Expectation) -> Iterator[Finding]:
    """The task started over from its first step and said nothing."""
    made, older = progress(history, expectation), OlderCopies.of(history)
    for attempt, redos in _restarts(history, made, older).items():
        first, known = redos[0], len(older.done_before(made, attempt))
        yield Finding(
            kind="silent_restart",
            operation=first.again.name,
            subject="first step",
            expected="the resume goes on where the task was killed",
            seen=f"attempt {attempt} began again at its first step, {first.again.name}",
            because=f"{_known(known)} known to earlier attempts, and it "
            f"ran {len(redos)} of them again",
            witness=(first.first.index, first.again.index),
        )
        return


def _complete(work: Work) -> str:
    if work.by == BY_CHILD:
        return f"the child that asked at event {work.index} outlived its parent and ended well"
    recorded = f" and recorded by {work.by} before the kill" if work.by else ""
    return f"it was complete at event {work.index}{recorded}"


def _known(steps: int) -> str:
    return f"{counted(steps, 'completed step')} {'was' if steps == 1 else 'were'}"


def _restarts(history: History, made: Progress, older: OlderCopies) -> dict[int, list[Redo]]:
    """Attempts that did all over again what was complete, from the very first step on."""
    again: dict[int, list[Redo]] = {}
    for redo in made.redone:
        if not redo.within:
            again.setdefault(redo.attempt, []).append(redo)
    return {
        attempt: redos
        for attempt, redos in again.items()
        if _from_the_start(
            [work.which for work in older.done_before(made, attempt)],
            [redo.again.which for redo in redos],
            cut_short=_cut_short(history, attempt),
        )
    }


def _from_the_start(before: Sequence[Which], redos: Sequence[Which], *, cut_short: bool) -> bool:
    """Whether ``redos`` is all of ``before`` again; of an attempt that was cut short, its head."""
    if cut_short:
        return list(redos) == list(before)[: len(redos)]
    return bool(before) and before[0] in redos and not Counter(before) - Counter(redos)


def _cut_short(history: History, attempt: int) -> bool:
    return any(body.attempt == attempt and body.how != "exit" for _, body in history.attempts)
