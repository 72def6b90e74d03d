"""One history as rows for a timeline: what happened, in words, on which lane, and what it repeats.

A row is a list of numbers, and as short as it can be, since there are many:

    [what, attempt, hundredths of a ms since the row before, lane, title, detail, marks, first]

``title`` and ``detail`` are numbers of texts (`Strings`), ``marks`` are the bits below, ``first``
is the row that this one repeats. Zeros at the end are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from chaoskit.model.effects import Effect
from chaoskit.model.events import (
    AttemptEnded,
    AttemptStarted,
    Body,
    CallSeen,
    Crossed,
    EffectApplied,
    EndStated,
    EventsLeftOut,
    FaultLanded,
    RecordsFound,
    ReplySent,
    RequestReceived,
    StateObserved,
    StepReported,
    TraceNoted,
)
from chaoskit.model.secrets import BLOT, is_secret_name
from chaoskit.probe.lines import LINE
from chaoskit.reporting.clean import plain, plain_lines
from chaoskit.reporting.html.packing import Strings

WHATS: dict[type, int] = {
    AttemptStarted: 0,
    AttemptEnded: 1,
    CallSeen: 2,
    RequestReceived: 3,
    EffectApplied: 4,
    ReplySent: 5,
    Crossed: 6,
    StepReported: 7,
    FaultLanded: 8,
    EndStated: 9,
    TraceNoted: 10,
    StateObserved: 11,
    EventsLeftOut: 12,
    RecordsFound: 13,
}
"""What a row is, as a number; `assets/words.js` has the same table."""

REPEATED, REDONE, WITNESS, DEDUPED = 1, 2, 4, 8
"""Marks: an effect that happened too often / work that was done again / evidence of a finding /
answered with an earlier answer."""

FIELD_MOST = 200
"""So many characters of one field are shown; how many there were is then said."""

TASK, STEPS, CODE, FILES = "task", "steps", "code", "files"
"""Lanes that are no service."""


class Tape(msgspec.Struct, frozen=True):
    """Rows with the names of their lanes; ``error`` is the row of the first error, -1 for none."""

    lanes: list[str]
    rows: list[list[int]]
    error: int = -1


@dataclass(frozen=True, slots=True)
class Marked:
    """What is known of some events of a history, all by index.

    Args:
        repeats: an effect that happened too often, and the first one of its identity.
        redone: work that was begun again, and what had completed it.
        witness: evidence of findings.
    """

    repeats: Mapping[int, int] = field(default_factory=dict)
    redone: Mapping[int, int] = field(default_factory=dict)
    witness: frozenset[int] = frozenset()

    def of(self, index: int) -> tuple[int, int | None]:
        """The marks of an event, and which one it repeats."""
        marks = REPEATED if index in self.repeats else 0
        marks |= REDONE if index in self.redone else 0
        marks |= WITNESS if index in self.witness else 0
        return marks, self.repeats.get(index, self.redone.get(index))


def tape(
    events: Iterator[tuple[int, int, Body]], strings: Strings, marked: Marked | None = None
) -> Tape:
    """Rows for ``(index, at_us, body)`` in order.

    Args:
        events: of one history, or some of it.
        strings: where their texts go.
        marked: what is known of them.
    """
    known = marked or Marked()
    rows: list[list[int]] = []
    lanes: dict[str, int] = {}
    at: dict[int, int] = {}
    asked: dict[int, RequestReceived] = {}
    then = 0
    for index, at_us, body in events:
        if isinstance(body, RequestReceived):
            asked[body.request] = body
        marks, first = known.of(index)
        if isinstance(body, ReplySent) and body.deduped:
            marks |= DEDUPED
        title, detail = in_words(body, asked)
        now = at_us // 10
        at[index] = len(rows)
        row = [
            WHATS[type(body)],
            getattr(body, "attempt", 0),
            now - then,
            lanes.setdefault(_lane(body, asked), len(lanes)),
            strings.number(title),
            strings.number(detail),
            marks,
            at.get(first, 0) if first is not None else 0,
        ]
        then = now
        while row and not row[-1]:
            row.pop()
        rows.append(row)
    return Tape(list(lanes), rows, _first_error(known, at))


def _first_error(known: Marked, at: Mapping[int, int]) -> int:
    for found in (known.repeats, known.redone, known.witness):
        rows = [at[index] for index in found if index in at]
        if rows:
            return min(rows)
    return -1


def _lane(body: Body, asked: Mapping[int, RequestReceived]) -> str:
    if isinstance(body, RequestReceived):
        return plain(body.service)
    if isinstance(body, EffectApplied):
        return plain(body.effect.service)
    if isinstance(body, ReplySent):
        request = asked.get(body.request)
        return plain(request.service) if request is not None else TASK
    if isinstance(body, CallSeen):
        return FILES
    if isinstance(body, StepReported):
        return STEPS
    return CODE if isinstance(body, Crossed) else TASK


def in_words(body: Body, asked: Mapping[int, RequestReceived]) -> tuple[str, str]:
    """An event as a reader would say it, and what else is known of it; both safe to show."""
    title, *rest = _words(body, asked)
    return plain(title), "\n".join(filter(None, rest))


def _words(body: Body, asked: Mapping[int, RequestReceived]) -> Iterator[str]:
    """The title, then lines of detail that are safe to show."""
    if isinstance(body, RequestReceived):
        yield f"{body.service}.{body.operation}#{body.ordinal}"
        look = "asks for an effect that is ignored" if body.ignored else "a look; changes nothing"
        yield f"asks for {plain(body.wants.in_words())}" if body.wants else look
        yield f"key {plain(body.key)}" if body.key else ""
        yield f"fencing token {body.token}" if body.token is not None else ""
    elif isinstance(body, EffectApplied):
        yield body.effect.in_words()
        yield "ignored, however often it happens" if body.ignored else ""
        yield from effect_lines(body.effect)
    elif isinstance(body, ReplySent):
        request = asked.get(body.request)
        whom = f" to {request.service}.{request.operation}#{request.ordinal}" if request else ""
        yield f"{body.status}{whom}"
        yield "an earlier answer again, without a new effect" if body.deduped else ""
        yield "" if body.delivered else "nobody was there to read it"
    elif isinstance(body, CallSeen):
        yield body.call
        yield f"by {plain(body.program)}" if body.program else ""
        yield f"{body.bytes} bytes" if body.bytes else ""
        yield "sends to a service" if body.sends else ""
    elif isinstance(body, StepReported):
        yield f"{body.step} {body.phase}"
    elif isinstance(body, Crossed):
        yield f"{body.name.removeprefix(LINE)}#{body.ordinal}"
    else:
        yield from _words_of_the_task(body)


def effect_lines(effect: Effect) -> Iterator[str]:
    """What a ledger says of an effect, one field a line, without secrets."""
    for name, value in effect.fields:
        shown = BLOT if is_secret_name(name) else plain(value, FIELD_MOST)
        yield f"{plain(name, FIELD_MOST)}: {shown}"
    yield f"key {plain(effect.key, FIELD_MOST)}" if effect.key else ""
    yield f"booked as {plain(effect.ref, FIELD_MOST)}" if effect.ref else ""


def _words_of_the_task(body: Body) -> Iterator[str]:
    if isinstance(body, AttemptStarted):
        yield f"attempt {body.attempt} " + ("resumes" if body.resume else "starts")
    elif isinstance(body, AttemptEnded):
        yield f"attempt {body.attempt} ends: {_ended(body)}"
        yield f"after {body.seconds:.3f} s"
        yield from (f"left running: {plain(line)}" for line in body.leftovers)
        if body.output_tail.strip():
            yield f"it printed {body.output_bytes} bytes, the last of them:"
            yield from plain_lines(body.output_tail.rstrip())
    elif isinstance(body, FaultLanded):
        yield body.fault
    elif isinstance(body, EndStated):
        yield {"refused": "refuses to go on", "unknown": "says: outcome unknown"}[body.end]
        yield f"because {plain(body.reason)}"
        yield f"step {plain(body.step)}" if body.step else ""
    elif isinstance(body, TraceNoted):
        yield f"noted: {body.what}"
        yield plain(body.detail)
    elif isinstance(body, EventsLeftOut):
        yield f"no more than {body.limit:,} events are kept"
        yield f"{body.most:,} are {plain(body.what)}"
    elif isinstance(body, StateObserved):
        yield "the files that it leaves"
        yield from (f"{plain(path)}: {digest[:16]}" for path, digest in body.digests.items())
        yield from (f"{plain(path)}: {file.size:,} bytes" for path, file in body.left.items())
    elif isinstance(body, RecordsFound):
        yield "the files that record completed steps"
        yield from (f"{plain(path)}: {size:,} bytes" for path, size in body.files.items())


def _ended(body: AttemptEnded) -> str:
    return {
        "exit": f"exit code {body.code}",
        "signal": f"by its own signal {body.code}",
        "killed": f"killed by signal {body.code}",
        "stopped": f"stopped, code {body.code}",
        "timeout": "killed by the time limit",
        "not-started": "it could not be started",
    }[body.how]
