"""redone_step and silent_restart: finished work that was done again, deduped or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chaoskit.checkers.comparison import in_words, subject
from chaoskit.checkers.progress import Done, Redo, completed, redone
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
        before = {d.name if d.identity is None else d.identity for d in done if d.attempt < attempt}
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
    found: dict[int, list[Redo]] = {}
    again: dict[int, list[Redo]] = {}
    for redo in redone(history, expectation):
        again.setdefault(redo.attempt, []).append(redo)
    for attempt, redos in again.items():
        before = list(
            dict.fromkeys(
                d.name if d.identity is None else d.identity for d in done if d.attempt < attempt
            )
        )
        repeated = {r.name if r.identity is None else r.identity for r in redos}
        if not before or before[0] not in repeated:
            continue
        cut_short = any(
            body.attempt == attempt and body.how != "exit" for _, body in history.attempts
        )
        if cut_short or repeated >= set(before):
            found[attempt] = redos
    return found
