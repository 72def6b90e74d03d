"""What a run's own figures say about how often it should be recorded.

A record costs a commit. No record costs, at a kill, the calls that are made again. Both are known
from the run itself: how long its calls took, by kind of step, and how long its commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from chaoskit.runtime.books import Books
from chaoskit.runtime.records import IRREVERSIBLE, Order, RunRecord, State, StepRecord

WORTH_A_PHASE = 0.1
"""A phase is suggested where commits take more than this part of the calls' time."""


class Kind(NamedTuple):
    """The steps of a run that are declared alike: their order and policy, as texts."""

    order: str
    policy: str
    number: int
    seconds: float

    @property
    def repeatable(self) -> bool:
        """Whether their completions may be held back."""
        return self.order == Order.RECORD_AFTER.value or self.policy in {"read-only", "key"}

    @property
    def commits(self) -> int:
        """What one of them costs when recorded by itself."""
        return 2 if self.order == Order.INTENT_FIRST.value else 1


class Figures(NamedTuple):
    """What is known of a run: its kinds of steps, and its commits as far as attempts told them."""

    kinds: tuple[Kind, ...]
    commits: int
    commit_seconds: float


def summary(run: RunRecord, books: Books, *, ended: bool) -> Mapping[str, Any]:
    """The figures to keep with the run: of its commits; at its end, of its steps too."""
    commits, seconds = books.timing
    before = run.summary
    kept: dict[str, Any] = {
        "commits": before.get("commits", 0) + commits,
        "commit_seconds": round(before.get("commit_seconds", 0) + seconds, 6),
    }
    if ended:
        kept["kinds"] = [list(kind) for kind in _kinds(books.steps(run.run_id))]
    return kept


def figures(run: RunRecord, steps: Iterable[StepRecord]) -> Figures:
    """What is known of a run, whether it is finished or not."""
    kinds = (
        tuple(Kind(*kind) for kind in run.summary.get("kinds", ()))
        if run.finished
        else _kinds(steps)
    )
    return Figures(kinds, run.summary.get("commits", 0), run.summary.get("commit_seconds", 0.0))


def advice(found: Figures) -> list[str]:
    """Sentences: what the run spent, what its costs suggest, and what a kill would cost."""
    if not found.kinds:
        return ["no step is recorded, so there is nothing to tell"]
    lines = [_kind_line(kind) for kind in found.kinds]
    if not found.commits:
        lines.append(
            "no attempt has told what its commits cost: figures are kept when a run is closed"
        )
        return lines
    each = found.commit_seconds / found.commits
    lines.append(f"a commit took {_time(each)} ({found.commits} of them timed)")
    lines += [line for kind in found.kinds for line in _suggestions(kind, each)]
    return lines


def _suggestions(kind: Kind, commit: float) -> list[str]:
    name = f"{kind.order}, {kind.policy}"
    if not kind.repeatable:
        why = (
            "cannot be repeated" if kind.policy == IRREVERSIBLE else "is asked after by its record"
        )
        return [f"{name}: record each by itself; what {why} must not wait for others"]
    spent, calls = kind.number * kind.commits * commit, kind.seconds
    mean = kind.seconds / kind.number
    each = f"each by itself: {_time(spent)} for records; a kill costs {_time(mean)}, one call"
    whole = f"one phase: {_time(2 * commit)} for records; a kill costs up to {_time(calls)}"
    if spent <= WORTH_A_PHASE * calls:
        return [f"{name}: {each}. That is a small part of the calls: leave it so. ({whole})"]
    budget = max(commit / WORTH_A_PHASE, mean)
    risk = _time(budget + mean)
    phase = f"use a phase. With run.phase(…, cost_s={budget:.2g}) a kill costs at most {risk}"
    return [
        f"{name}: {each}. That is {_part(spent, calls)} of the calls: {phase}; {whole}",
    ]


def _kind_line(kind: Kind) -> str:
    mean = kind.seconds / kind.number
    return (
        f"{kind.number} steps ({kind.order}, {kind.policy}): {_time(kind.seconds)} in calls, "
        f"{_time(mean)} each"
    )


def _kinds(steps: Iterable[StepRecord]) -> tuple[Kind, ...]:
    found: dict[tuple[str, str], list[float]] = {}
    for step in steps:
        if step.state is State.DONE and step.order is not Order.PHASE:
            found.setdefault((step.order.value, step.policy), []).append(step.seconds or 0.0)
    return tuple(
        Kind(*kind, len(times), round(sum(times), 6)) for kind, times in sorted(found.items())
    )


def _part(one: float, whole: float) -> str:
    return f"{one / whole:.0%}" if whole else "more than all"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
