"""stale_world, resurrected, needless_refusal and stale_writer: what a task does after the world has
changed, after it was cancelled, and after somebody else has taken its place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from chaoskit.checkers.comparison import times
from chaoskit.checkers.outputs import OUTPUTS
from chaoskit.model.behaviours import KINDS as BEHAVIOURS
from chaoskit.model.events import AttemptEnded, EffectApplied
from chaoskit.model.expectation import Expectation, Terms
from chaoskit.model.findings import Finding
from chaoskit.model.history import History

_CHANGE, _PAUSE = "change:", "pause@"
_REASONS = ("damage:", "clock:", "resumers:", "power:", "pause@", "twin@", *BEHAVIOURS)
"""How faults begin that may be a good reason to refuse."""

_EXCUSED: Mapping[str, Collection[str]] = {
    "replan": {"wrong_inputs", "wrong_binding", "lost_effect", "false_success", "diverged_state"},
    "stop": {"lost_effect", "false_success", "diverged_state"},
}
"""What is no fault after a change: another plan has other effects and other files, and of a task
that was told to stop for good the rest is not wanted any more.
"""

Landed = tuple[int, int, str, Terms]
"""Where a change took place, before which attempt, its name, and what a correct task does then."""


def stale_world(history: History, expectation: Expectation) -> Iterator[Finding]:
    """Effects on terms that no longer hold; of the kind that the change itself names."""
    for index, attempt, name, terms in _changes(history, expectation):
        if terms.right == "refuse":
            wrong = _effects_after(history, index, attempt, terms)
            wanted = "the task refuses, or names a step of unknown outcome, before it goes on"
        elif terms.right == "replan":
            wrong = [
                (at, body)
                for at, body in _effects_after(history, index, attempt, terms)
                if expectation.identify(body.effect) in expectation.counts
            ]
            wanted = "what is done from then on is planned anew"
        else:
            continue
        yield from _finding(terms.finding, name, index, wrong, wanted)


def resurrected(history: History, expectation: Expectation) -> Iterator[Finding]:
    """Effects of a task that had been told to stop for good."""
    for index, attempt, name, terms in _changes(history, expectation):
        if terms.right == "stop":
            wrong = _effects_after(history, index, attempt, terms)
            wanted = "no effect any more, however often the task is resumed"
            yield from _finding("resurrected", name, index, wrong, wanted)


def needless_refusal(history: History, expectation: Expectation) -> Iterator[Finding]:
    """A refusal after a change that concerns nothing the task still needs."""
    changes = list(_changes(history, expectation))
    end = history.stated_end
    if end is None or end.end != "refused" or not changes:
        return
    others = any(body.fault.startswith(_REASONS) for _, body in history.landed)
    if others or any(terms.right != "go-on" for *_, terms in changes):
        return  # there may be another reason
    index, _, name, _ = changes[-1]
    yield Finding(
        kind="needless_refusal",
        operation="task",
        subject=name,
        expected=f"the task goes on after the change {name!r}, which nothing left to do depends on",
        seen=f"attempt {end.attempt} refused",
        because=end.reason[:200] or "it gave no reason",
        witness=(index, history.attempts[-1][0]),
    )


def stale_writer(history: History, expectation: Expectation) -> Iterator[Finding]:
    """Effects of a runner that was paused, asked for after another one had gone on in its place."""
    for _, fault in history.landed:
        if not fault.fault.startswith(_PAUSE):
            continue
        old, new = fault.attempt, fault.attempt + 1
        woke = next((index for index, body in history.attempts if body.attempt == new), None)
        if woke is None or not _went_on(history, new):
            continue
        asked = {b.request for i, b in history.requests if i > woke and b.attempt == old}
        wrong = [(i, b) for i, b in history.effects if b.attempt == old and b.request in asked]
        if not wrong:
            continue
        effect = wrong[0][1].effect
        yield Finding(
            kind="stale_writer",
            operation=effect.operation,
            subject="paused runner",
            expected=f"attempt {old} does nothing any more once attempt {new} has gone on",
            seen=f"{times(len(wrong))}, the first one {effect.in_words()}",
            because=f"attempt {old} was paused, attempt {new} went on in its place, and attempt "
            f"{old} did not notice when it woke",
            witness=(woke, *(index for index, _ in wrong)),
        )


def excused(finding: Finding, history: History, expectation: Expectation) -> bool:
    """Whether a finding only says that a task was planned anew, or has stopped, as was right."""
    return any(
        finding.kind in _EXCUSED.get(terms.right, ())
        and (finding.operation == OUTPUTS or _matters(finding.operation, terms))
        for *_, terms in _changes(history, expectation)
    )


def _changes(history: History, expectation: Expectation) -> Iterator[Landed]:
    for index, body in history.landed:
        name = body.fault.removeprefix(_CHANGE)
        terms = expectation.changes.get(name)
        if body.fault.startswith(_CHANGE) and terms is not None:
            yield index, body.attempt, name, terms


def _matters(operation: str, terms: Terms) -> bool:
    return any(fnmatchcase(operation, pattern) for pattern in terms.matters)


def _effects_after(
    history: History, index: int, attempt: int, terms: Terms
) -> list[tuple[int, EffectApplied]]:
    """What attempts since the change did of what matters; what was under way before is excused."""
    return [
        (at, body)
        for at, body in history.effects
        if at > index and body.attempt >= attempt and _matters(body.effect.operation, terms)
    ]


def _finding(
    kind: str, name: str, index: int, wrong: Sequence[tuple[int, EffectApplied]], wanted: str
) -> Iterator[Finding]:
    if not wrong:
        return
    effect = wrong[0][1].effect
    yield Finding(
        kind=kind,
        operation=effect.operation,
        subject=name,
        expected=f"after the change {name!r}: {wanted}",
        seen=f"{times(len(wrong))}, the first one {effect.in_words()}",
        because=f"the change came before attempt {wrong[0][1].attempt}, which went on all the same",
        witness=(index, *(at for at, _ in wrong)),
    )


def _went_on(history: History, attempt: int) -> bool:
    """Whether an attempt did anything of its own: an effect, a record, or a claim of success."""
    ends: list[AttemptEnded] = [b for _, b in history.attempts if b.attempt == attempt]
    return (
        any(ended.succeeded for ended in ends)
        or any(b.attempt == attempt for _, b in history.effects)
        or any(b.attempt == attempt and b.phase == "recorded" for _, b in history.steps)
    )
