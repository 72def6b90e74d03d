"""The trials of a campaign as the page holds them: an index of all, and the histories in blocks.

The index is unpacked when the page opens, a block when one of its trials is looked at. Trials of
one block share a table of texts, and are so much alike that they pack well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from chaoskit.campaign.store import Store, StoredTrial
from chaoskit.model.events import Body
from chaoskit.model.expectation import Expectation
from chaoskit.model.history import History
from chaoskit.reporting.clean import plain
from chaoskit.reporting.html.outcomes import outcome
from chaoskit.reporting.html.packing import Strings, packed
from chaoskit.reporting.html.repeats import Extra, repetition
from chaoskit.reporting.html.tape import Marked, Tape, tape
from chaoskit.reporting.html.waste import Waste
from chaoskit.reporting.summary import ReportedFinding

BLOCK_EVENTS = 6_000
"""A block is closed once it holds so many events: about a millisecond to unpack and read."""

EVENTS_MOST = 1_500_000
"""So many events are put into a page; then trials that were VALID go without their history."""


class Row(msgspec.Struct, frozen=True, array_like=True):
    """One line of the index. ``kind`` is -1 without a finding; ``block`` -1 without a history.

    ``way``: 0 a real kill, 1 from a copy, 2 from a copy with another trial's resume.
    """

    schedule: str
    wave: int
    outcome: int
    kind: int
    way: int
    end: str
    repeated: str
    block: int
    within: int


class Said(msgspec.Struct, frozen=True):
    """One finding in a trial's details, in the words of the other reports."""

    kind: str
    operation: str
    expected: str
    seen: str
    because: str
    between: str
    code: str
    consequences: tuple[str, ...]
    replay: str


class Details(msgspec.Struct, frozen=True):
    """What is shown of one trial when it is opened."""

    tape: Tape
    findings: tuple[Said, ...]
    unknowns: tuple[str, ...]


class _Block(msgspec.Struct, frozen=True):
    strings: list[str]
    trials: list[Details]


@dataclass(frozen=True, slots=True)
class Trials:
    """``rows`` in the order of the plan, ``blocks`` packed; ``left_out`` have no history here."""

    rows: list[Row]
    blocks: list[str]
    extras: list[tuple[int, Extra]]
    waste: Waste
    left_out: int


def trial_rows(
    store: Store,
    expectation: Expectation,
    findings: Mapping[str, Sequence[ReportedFinding]],
    kinds: Sequence[str],
    events_most: int = EVENTS_MOST,
) -> Trials:
    """Every stored trial.

    Args:
        store: the campaign.
        expectation: of it.
        findings: what was reported, by schedule as it is stored.
        kinds: of findings, in the order in which the page names them.
        events_most: so many events may go into the page.
    """
    trials = list(store.trials())
    repeats = store.repeats()
    survey = store.survey()
    waste = Waste(survey[0] if survey is not None else None)
    room = events_most - sum(len(store.history(t.schedule).events) for t in trials if _wrong(t))
    packer = _Packer()
    rows: list[Row] = []
    extras: list[tuple[int, Extra]] = []
    for number, trial in enumerate(trials):
        history = store.history(trial.schedule)
        found = repetition(history, expectation, trial.judgement)
        extras.extend((number, extra) for extra in found.extras)
        waste.add(number, history, found, real=trial.real and trial.wave > 0)
        block, within = -1, 0
        fits = _wrong(trial) or (room := room - len(history.events)) >= 0
        if fits:
            made = _tape(history, packer, found.marked)
            said = tuple(map(_said, findings.get(plain(trial.schedule), ())))
            unknowns = tuple(map(plain, trial.judgement.unknowns))
            block, within = packer.add(Details(made, said, unknowns))
        shown = trial.judgement.roots[:1] or trial.judgement.findings[:1]
        rows.append(
            Row(
                schedule=plain(trial.schedule),
                wave=trial.wave,
                outcome=outcome(trial, repeats),
                kind=kinds.index(shown[0].kind) if shown else -1,
                way=0 if trial.real else 2 if trial.shared else 1,
                end=plain(trial.judgement.end),
                repeated=str(repeats.get(trial.schedule, "")),
                block=block,
                within=within,
            )
        )
    return Trials(rows, packer.close(), extras, waste, sum(row.block < 0 for row in rows))


def _wrong(trial: StoredTrial) -> bool:
    return trial.judgement.verdict != "VALID"


def _said(one: ReportedFinding) -> Said:
    return Said(
        one.kind,
        one.concerns,
        one.expected,
        one.seen,
        one.because,
        one.between,
        one.code,
        one.consequences,
        one.replay,
    )


class _Packer:
    """Collects details into blocks."""

    def __init__(self) -> None:
        self.strings = Strings()
        self._details: list[Details] = []
        self._events = 0
        self._blocks: list[str] = []

    def add(self, details: Details) -> tuple[int, int]:
        """Put ``details`` into a block; which one, and where in it."""
        place = len(self._blocks), len(self._details)
        self._details.append(details)
        self._events += len(details.tape.rows)
        if self._events >= BLOCK_EVENTS:
            self._pack()
        return place

    def close(self) -> list[str]:
        """Every block, packed."""
        if self._details:
            self._pack()
        return self._blocks

    def _pack(self) -> None:
        self._blocks.append(packed(_Block(self.strings.texts, self._details)))
        self.strings, self._details, self._events = Strings(), [], 0


def _tape(history: History, packer: _Packer, marked: Marked) -> Tape:
    return tape(_events(history), packer.strings, marked)


def _events(history: History) -> Iterator[tuple[int, int, Body]]:
    for event in history.events:
        yield event.index, event.at_us, event.body
