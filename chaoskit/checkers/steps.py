"""redone_step and silent_restart: finished work that was done again, deduped or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from chaoskit.checkers.comparison import in_words, subject
from chaoskit.checkers.progress import Done, Redo, completed, may_be_redone, redone
from chaoskit.model.effects import Identity
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Finding
from chaoskit.model.history import History


def redone_step(history: History, expectation: Expectation) -> Iterator[Finding]:
    """Steps that were complete and were run again, without the whole task starting over."""
    done = completed(history, expectation)
    known: set[str] = set()
    for redo in redone(history, expectation):
        if redo.attempt in _restarts(history, expectation, done):
            continue
        words = redo.name
        if redo.identity is not None:
            words = f"{redo.name} ({in_words(redo.identity, expectation)})"
        if words in known:
            continue
        known.add(words)
        yield Finding(
            kind="redone_step",
            operation=redo.name,
            subject=subject(redo.identity) if redo.identity is not None else redo.name,
            expected=f"{words}: not again once it was complete",
            seen=f"run again by attempt {redo.attempt}",
            because=f"it was complete at event {redo.first}, and event {redo.again} runs it again",
            witness=(redo.first, redo.again),
        )


def silent_restart(history: History, expectation: Expectation) -> Iterator[Finding]:
    """The task started over from its first step and said nothing."""
    done = completed(history, expectation)
    for attempt, again in _restarts(history, expectation, done).items():
        before = {_which(d) for d in done if d.attempt < attempt}
        yield Finding(
            kind="silent_restart",
            operation=again[0].name,
            subject="first step",
            expected="the resume goes on where the task was killed",
            seen=f"attempt {attempt} began again at its first step, {again[0].name}",
            because=f"{len(before)} completed steps were known to earlier attempts, and it ran "
            f"{len(again)} of them again",
            witness=(again[0].first, again[0].again),
        )
        return


def _restarts(
    history: History, expectation: Expectation, done: Sequence[Done]
) -> dict[int, list[Redo]]:
    """Attempts that did all over again what was complete, from the very first step on."""
    again: dict[int, list[Redo]] = {}
    for redo in redone(history, expectation):
        again.setdefault(redo.attempt, []).append(redo)
    return {
        attempt: redos
        for attempt, redos in again.items()
        if _from_the_start(
            [_which(d) for d in done if d.attempt < attempt and not may_be_redone(d, expectation)],
            [_which(redo) for redo in redos],
            cut_short=_cut_short(history, attempt),
        )
    }


def _from_the_start(
    before: Sequence[Identity | str], redos: Sequence[Identity | str], *, cut_short: bool
) -> bool:
    """Whether ``redos`` is all of ``before`` again; of an attempt that was cut short, its head."""
    if cut_short:
        return list(redos) == list(before)[: len(redos)]
    return bool(before) and before[0] in redos and not Counter(before) - Counter(redos)


def _cut_short(history: History, attempt: int) -> bool:
    return any(body.attempt == attempt and body.how != "exit" for _, body in history.attempts)


def _which(what: Done | Redo) -> Identity | str:
    return what.name if what.identity is None else what.identity
