"""diverged_state, and the false_success of a lost output: what differs in each declared file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from chaoskit.checkers.comparison import counted
from chaoskit.model.events import Output
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Finding
from chaoskit.model.history import History
from chaoskit.model.secrets import lines_without_secrets

OUTPUTS = "outputs"
"""The operation of a finding about declared files."""

SHOWN_MOST = 3
LINE_MOST = 60
"""How many characters of a line are quoted."""

_BEFORE = 20
"""So many characters before the first difference are quoted where it comes late in a line."""


def diverged_state(history: History, expectation: Expectation) -> Iterator[Finding]:
    """Declared outputs that differ from those of an undisturbed run, each with what differs."""
    if names := _differing(history, expectation):
        yield Finding(
            kind="diverged_state",
            operation=OUTPUTS,
            subject=OUTPUTS,
            expected=f"{counted(len(expectation.digests), 'output')} as an undisturbed run leaves "
            "them",
            seen=f"{len(names)} that differ{'s' if len(names) == 1 else ''}",
            because=_some([_change(name, history, expectation) for name in names]),
            witness=(history.events[-1].index,),
        )


def lost_output(history: History, expectation: Expectation) -> Iterator[Finding]:
    """A false_success: an output is missing, empty or cut short, and success was claimed."""
    lost = [
        (name, words)
        for name in _differing(history, expectation)
        if name in expectation.digests and (words := _lost(name, history, expectation))
    ]
    if lost:
        index, claim = history.claim
        yield Finding(
            kind="false_success",
            operation=OUTPUTS,
            subject=OUTPUTS,
            expected=f"{_some([name for name, _ in lost])}: complete when the task claims success",
            seen=_some([words for _, words in lost]),
            because=f"attempt {claim.attempt} ended with success all the same",
            witness=(index, history.events[-1].index),
        )


def _differing(history: History, expectation: Expectation) -> list[str]:
    """The outputs that differ at a claimed success, without those that always do."""
    if not history.completed:
        return []
    want, have = expectation.digests, history.digests
    unstable = expectation.volatile.get("outputs", ())
    names = {name for name in want.keys() | have.keys() if want.get(name) != have.get(name)}
    return sorted(names.difference(unstable))


def _some(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - SHOWN_MOST} more" if len(texts) > SHOWN_MOST else ""
    return "; ".join(texts[:SHOWN_MOST]) + more


def _change(name: str, history: History, expectation: Expectation) -> str:
    if name not in expectation.digests:
        return f"{name} was never expected"
    if lost := _lost(name, history, expectation):
        return f"{name} is {lost}"
    have, want = history.outputs.get(name), expectation.outputs.get(name)
    if have is None or want is None:
        return f"{name} has other content"
    return f"{name} {_difference(have, want)}"


def _lost(name: str, history: History, expectation: Expectation) -> str:
    """That all of an expected output is lost, or its end; empty where it is not."""
    if name not in history.digests:
        return "missing"
    have, want = history.outputs.get(name), expectation.outputs.get(name)
    if have is None or want is None or have.size >= want.size:
        return ""
    if have.size == 0:
        return f"empty: an undisturbed run leaves {want.size:,} bytes"
    if have.content is None or want.content is None or not want.content.startswith(have.content):
        return ""
    return f"cut short: it has the first {have.size:,} of {want.size:,} bytes"


def _difference(have: Output, want: Output) -> str:
    if have.content is not None and want.content is not None:
        lines, expected = _lines(have.content), _lines(want.content)
        if lines is not None and expected is not None and lines != expected:
            return _by_lines(lines, expected)
    sizes = f"has {have.size:,} bytes" + (f", not {want.size:,}" if have.size != want.size else "")
    if have.content is None or want.content is None:
        return sizes + (", and other content" if have.size == want.size else "")
    at = _alike(have.content, want.content)
    return f"{sizes}; they differ from offset {at:,} on"


def _lines(content: bytes) -> list[str] | None:
    """The lines of a text without their ends, credentials blotted out; None of a binary file."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else lines_without_secrets(text.removesuffix("\n"))


def _by_lines(have: list[str], want: list[str]) -> str:
    """How many lines are lost, repeated and new, and the first line that differs."""
    lost, more = Counter(want) - Counter(have), Counter(have) - Counter(want)
    known = set(want)
    repeated = sum(number for line, number in more.items() if line in known)
    counts = (
        (lost.total(), f"of {counted(len(want), 'line')} lost"),
        (repeated, "repeated"),
        (more.total() - repeated, "new"),
    )
    told = [f"{number} {words}" for number, words in counts if number]
    summary = f"has {', '.join(told)}" if told else "has its lines in another order"
    number, pair = next(
        (number, pair)
        for number, pair in enumerate(zip_longest(have, want), 1)
        if pair[0] != pair[1]
    )
    return f"{summary}; line {number} is {_quoted(*pair)}, expected {_quoted(*reversed(pair))}"


def _quoted(line: str | None, other: str | None) -> str:
    """``line``, shortened to what shows how it differs from ``other``; None: there is no more."""
    if line is None:
        return "the end"
    same = _alike(line, other or "")
    start = same - _BEFORE if same > LINE_MOST - _BEFORE else 0
    shown = line[start : start + LINE_MOST]
    return ("…" if start else "") + repr(shown) + ("…" if start + LINE_MOST < len(line) else "")


def _alike(one: str | bytes, other: str | bytes) -> int:
    """At how many places from the beginning on the two are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
