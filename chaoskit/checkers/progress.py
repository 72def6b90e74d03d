"""How far each attempt had come: what was complete before the next one began, and was done again,
by another attempt or by the same one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from chaoskit.checkers.older import OlderCopies
from chaoskit.checkers.work import Pieces, Progress, Redo, Which, Work, pieces
from chaoskit.model.events import AttemptStarted
from chaoskit.model.expectation import Expectation
from chaoskit.model.history import History


@lru_cache(maxsize=1)
def progress(history: History, expectation: Expectation) -> Progress:
    """How far each attempt had come. The last answer is kept: several checkers ask."""
    found = pieces(history, expectation)
    redone = {redo.again.index: redo for redo in _within(found, history)}
    redone |= {redo.again.index: redo for redo in _redone(found)}
    began = {body.attempt: index for index, body in history.of(AttemptStarted)}
    made = Progress(found.done, [redone[at] for at in sorted(redone)], found.allowed, began)
    return replace(made, redone=OlderCopies.of(history).redone(made))


def _within(found: Pieces, history: History) -> Iterator[Redo]:
    """Work that an attempt began once more after it had completed all of it itself.

    Of requests those that the service took for repeats: others have their effect again, and that
    says it all. Of reported steps those that an undisturbed run begins once: how often it begins
    another one may depend on what it waits for.
    """
    repeats = {body.request for _, body in history.replies.values() if body.deduped}
    silent = {index for index, body in history.requests if body.request in repeats}
    done: dict[tuple[int, Which], list[Work]] = {}
    for work in found.done:
        done.setdefault((work.attempt, work.which), []).append(work)
    for work in found.begun:
        most = found.allowed.get(work.which, 1)
        if work.index not in silent if work.identity is not None else most > 1:
            continue
        before = done.get((work.attempt, work.which), [])
        if len(before) >= most and before[most - 1].index < work.index:
            yield Redo(before[0], work)


def _redone(found: Pieces) -> Iterator[Redo]:
    """Work that was begun although earlier attempts had left none of it to do.

    An undisturbed run does each piece a known number of times. What earlier attempts have completed
    of these is not to be begun again.
    """
    first: dict[Which, Work] = {}
    settled: Counter[Which] = Counter()
    asked: Counter[Which] = Counter()
    waiting = list(reversed(found.done))
    attempt = 0
    for work in found.begun:
        if work.attempt != attempt:
            attempt = work.attempt
            asked.clear()
            while waiting and waiting[-1].attempt < attempt and waiting[-1].index < work.index:
                earlier = waiting.pop()
                settled[earlier.which] += 1
                first.setdefault(earlier.which, earlier)
        which = work.which
        asked[which] += 1
        if settled[which] and asked[which] > found.allowed.get(which, 1) - settled[which]:
            yield Redo(first[which], work)
