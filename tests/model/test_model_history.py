"""Histories: their stored form, and the indexes that checkers ask for."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from hypothesis import Phase, example, find, given, settings
from hypothesis import strategies as st

from chaoskit.model.effects import Effect
from chaoskit.model.errors import FormatError
from chaoskit.model.events import (
    AttemptEnded,
    AttemptStarted,
    Body,
    CallSeen,
    Crossed,
    EffectApplied,
    EndStated,
    Event,
    EventsLeftOut,
    FaultLanded,
    How,
    RecordsFound,
    ReplySent,
    RequestReceived,
    StatedEnd,
    StateObserved,
    StepPhase,
    StepReported,
    TraceNoted,
)
from chaoskit.model.history import FORMAT, History
from tests.model.values import CALL_POINTS, EFFECTS, FAULTS

NUMBERS = st.integers(1, 50)
TEXTS = st.text(max_size=8)

BODIES: st.SearchStrategy[Body] = st.one_of(
    st.builds(AttemptStarted, NUMBERS, st.booleans()),
    st.builds(
        RequestReceived,
        attempt=NUMBERS,
        request=NUMBERS,
        service=TEXTS,
        operation=TEXTS,
        ordinal=NUMBERS,
        key=st.none() | TEXTS,
        wants=st.none() | EFFECTS,
    ),
    st.builds(EffectApplied, attempt=NUMBERS, effect=EFFECTS, request=st.none() | NUMBERS),
    st.builds(
        ReplySent,
        attempt=NUMBERS,
        request=NUMBERS,
        status=st.integers(100, 599),
        deduped=st.booleans(),
        delivered=st.booleans(),
    ),
    st.builds(Crossed, NUMBERS, TEXTS, NUMBERS),
    st.builds(
        CallSeen,
        attempt=NUMBERS,
        call=CALL_POINTS.map(str),
        sends=st.booleans(),
        bytes=st.integers(0, 10**12),
        alone=st.booleans(),
    ),
    st.builds(TraceNoted, NUMBERS, TEXTS, TEXTS),
    st.builds(EventsLeftOut, attempt=NUMBERS, limit=NUMBERS, what=st.text(), most=NUMBERS),
    st.builds(StepReported, NUMBERS, TEXTS, st.sampled_from(get_args(StepPhase))),
    st.builds(
        EndStated,
        attempt=NUMBERS,
        end=st.sampled_from(get_args(StatedEnd)),
        reason=TEXTS,
        step=TEXTS,
    ),
    st.builds(FaultLanded, NUMBERS, FAULTS.map(str)),
    st.builds(
        AttemptEnded,
        attempt=NUMBERS,
        how=st.sampled_from(get_args(How)),
        code=st.integers(0, 255),
        seconds=st.floats(0, 1e6),
        leftovers=st.lists(TEXTS, max_size=2).map(tuple),
        output_bytes=st.integers(0, 10**12),
        output_tail=st.text(),
    ),
    st.builds(RecordsFound, NUMBERS, st.dictionaries(TEXTS, NUMBERS, max_size=3)),
    st.builds(StateObserved, st.dictionaries(TEXTS, TEXTS, max_size=3)),
)


def history(*bodies: Body) -> History:
    """The bodies in order."""
    return History(tuple(Event(index, 10 * index, body) for index, body in enumerate(bodies)))


HISTORIES = st.lists(BODIES, max_size=8).map(lambda bodies: history(*bodies))

SMALL = history(
    AttemptStarted(1, resume=False),
    Crossed(1, "charge.done", 1),
    AttemptEnded(attempt=1, how="exit", code=0, seconds=0.5),
)


@given(HISTORIES)
def test_every_history_comes_back_from_its_stored_form(some: History) -> None:
    """Decoding is the inverse of encoding, for events of every kind."""
    assert History.decode(some.encode()).events == some.events


NOT_SHRUNK = settings(phases=[Phase.generate], max_examples=2000)


@pytest.mark.parametrize("kind", get_args(Body))
def test_the_generated_events_are_of_every_kind(kind: type[Body]) -> None:
    """No kind of event is left out of the property above."""
    seen = find(BODIES, lambda body: isinstance(body, kind), settings=NOT_SHRUNK)
    assert isinstance(seen, kind)


@given(HISTORIES, st.integers().filter(lambda number: number != FORMAT))
@example(SMALL, FORMAT + 1)
def test_another_format_version_is_refused(some: History, version: int) -> None:
    """The refusal names both versions, even where the rest could have been read."""
    stored = msgspec.json.decode(some.encode())
    with pytest.raises(FormatError, match=f"has format {version}, and this chaoskit reads 1"):
        History.decode(msgspec.json.encode({**stored, "format": version}))


def test_the_rest_of_another_version_is_not_looked_at() -> None:
    """A later version may store anything; it is refused by its number all the same."""
    with pytest.raises(FormatError, match="has format 2"):
        History.decode(b'{"format": 2, "events": "packed elsewhere"}')


@given(st.binary())
@example(b"")
@example(b"\xff\xfe")
@example(b"[]")
@example(b"{}")
@example(b'{"format": "1", "events": []}')
@example(b'{"format": 1}')
@example(b'{"format": 1, "events": [{}]}')
@example(b'{"format": 1, "events": [{"index": 0, "at_us": 0, "body": {"type": "later"}}]}')
def test_any_bytes_are_refused_and_never_with_another_exception(data: bytes) -> None:
    """What is no stored history is a format error."""
    with pytest.raises(FormatError):
        History.decode(data)


@pytest.mark.parametrize("before", [b'{"later": ', b'{"format": 1, "later": '])
def test_nesting_without_an_end_is_refused(before: bytes) -> None:
    """Bytes that would exhaust the reader's stack are a format error as any others."""
    with pytest.raises(FormatError):
        History.decode(before + b"[" * 100_000)


@given(HISTORIES, st.data())
def test_a_history_that_was_cut_is_refused(some: History, data: st.DataObject) -> None:
    """However much of its end is missing."""
    stored = some.encode()
    with pytest.raises(FormatError):
        History.decode(stored[: data.draw(st.integers(0, len(stored) - 1))])


@given(HISTORIES, st.data())
def test_damaged_bytes_never_raise_anything_else(some: History, data: st.DataObject) -> None:
    """One wrong byte anywhere gives a readable history or a format error."""
    stored = bytearray(some.encode())
    stored[data.draw(st.integers(0, len(stored) - 1))] = data.draw(st.integers(0, 255))
    try:
        read = History.decode(bytes(stored))
    except FormatError:
        return
    assert isinstance(read, History)


@given(HISTORIES)
def test_the_indexes_hold_what_the_events_hold(some: History) -> None:
    """Each index is the events of its kind, in order, with the number of their event."""
    indexes = {
        EffectApplied: some.effects,
        RequestReceived: some.requests,
        StepReported: some.steps,
        AttemptEnded: some.attempts,
    }
    for kind, index in indexes.items():
        assert index == tuple((e.index, e.body) for e in some.events if isinstance(e.body, kind))
    for number, (index_of_reply, reply) in some.replies.items():
        assert some.events[index_of_reply].body is reply
        assert reply.request == number


def test_a_fault_has_landed_only_where_its_attempt_died_of_it() -> None:
    """A task that ended by itself in the moment of a timed kill was not killed."""
    fault = FaultLanded(attempt=1, fault="kill@5ms")

    def ended(how: How, code: int) -> AttemptEnded:
        return AttemptEnded(attempt=1, how=how, code=code, seconds=0.1)

    assert history(fault, ended("killed", 9)).landed == ((0, fault),)
    assert history(fault, ended("exit", 0)).landed == ()
    assert history(fault).landed == ()


def test_the_outputs_are_those_that_were_observed() -> None:
    """Digests by path; none where no output is declared."""
    assert history(StateObserved({"a.txt": "12"})).digests == {"a.txt": "12"}
    assert SMALL.digests == {}


@pytest.mark.parametrize(
    ("how", "code", "completed"),
    [
        ("exit", 0, True),
        ("exit", 1, False),
        ("signal", 0, False),
        ("killed", 9, False),
        ("timeout", 9, False),
        ("not-started", 127, False),
    ],
)
def test_only_an_end_by_itself_with_status_zero_is_success(
    how: How, code: int, *, completed: bool
) -> None:
    """Whatever else ended the last attempt is none."""
    ended = AttemptEnded(attempt=1, how=how, code=code, seconds=0.5)
    assert history(ended).completed is completed


def test_a_claim_of_success_ends_the_trial() -> None:
    """Earlier attempts may have ended in any way; after a success there is only the end of one that
    was paused meanwhile, which takes nothing back. Without any attempt nothing was completed.
    """
    killed = AttemptEnded(attempt=1, how="killed", code=9, seconds=0.5)
    done = AttemptEnded(attempt=2, how="exit", code=0, seconds=0.5)
    assert history(killed, done).completed
    assert history(killed, done).last == done
    assert history(done, killed).completed
    assert history(done, killed).last == killed
    assert not history(killed).completed
    assert not history().completed
    assert history().stated_end is None


REFUSED = EndStated(attempt=2, end="refused", reason="the inputs differ")
UNKNOWN = EndStated(attempt=2, end="unknown", reason="no answer", step="charge/7")


@pytest.mark.parametrize(
    ("stated", "attempt", "how", "code", "end"),
    [
        ([REFUSED], 2, "exit", 1, REFUSED),
        ([REFUSED, UNKNOWN], 2, "exit", 1, UNKNOWN),
        ([REFUSED], 2, "exit", 0, None),
        ([REFUSED], 3, "exit", 1, None),
        ([REFUSED], 2, "killed", 9, None),
        ([REFUSED], 2, "timeout", 9, None),
        ([REFUSED], 2, "signal", 11, None),
        ([], 2, "exit", 1, None),
    ],
)
def test_a_stated_end_counts_where_the_attempt_then_ended_by_itself(
    stated: list[EndStated], attempt: int, how: How, code: int, end: EndStated | None
) -> None:
    """What the last attempt said last, if its own end bears it out."""
    ended = AttemptEnded(attempt=attempt, how=how, code=code, seconds=0.5)
    assert history(*stated, ended).stated_end == end


def steps(*told: tuple[int, str, StepPhase]) -> History:
    """What attempts reported of their steps."""
    return history(*(StepReported(attempt, name, phase) for attempt, name, phase in told))


@pytest.mark.parametrize(
    ("told", "done"),
    [
        ([(1, "a", "started")], None),
        ([(1, "a", "started"), (1, "a", "recorded")], 1),
        ([(1, "a", "started"), (1, "b", "started")], 1),
        ([(1, "a", "started"), (2, "b", "started")], None),
        ([(1, "a", "started"), (1, "a", "started")], None),
        ([(1, "a", "started"), (1, "b", "recorded")], None),
        ([(1, "b", "recorded"), (1, "a", "restored")], None),
    ],
)
def test_a_step_is_done_once_it_is_recorded_or_where_none_is_once_the_next_began(
    told: list[tuple[int, str, StepPhase]], done: int | None
) -> None:
    """Another attempt's step proves nothing, nor does a repeat of the step itself."""
    assert steps(*told).done_at("a") == done


def test_a_step_is_found_by_its_name_and_by_a_pattern() -> None:
    """Also where the name itself looks like a pattern."""
    told = steps((1, "rows[1]", "recorded"))
    assert told.done_at("rows[1]") == told.done_at("rows*") == 0
    assert told.done_at("rows") is None


CHARGE = Effect(service="payments", kind="charge", fields=())


@pytest.mark.parametrize(
    ("fault", "landed"),
    [
        ("reject:503@payments.charge#2", True),
        ("reject:503@payments.*#*", True),
        ("down:1@payments.charge#3", True),
        ("reject:503@payments.charge#9", False),  # never so many
        ("reject:503@payments.refund#*", False),  # never asked
        ("lag:1@email.send#1", True),  # no request of this service is seen at all
    ],
)
def test_a_behaviour_landed_if_its_request_may_have_come(fault: str, landed: bool) -> None:
    """Its ordinal counts the requests of all attempts; it acts in its own attempt only."""
    bodies: list[Body] = [AttemptStarted(1, resume=False), _charge(1, 1)]
    bodies += [FaultLanded(1, "kill@10ms"), _ended(1, "killed", 9), FaultLanded(2, fault)]
    bodies += [AttemptStarted(2, resume=True), _charge(2, 1), _charge(2, 2), _ended(2, "exit", 0)]
    found = [body.fault for _, body in history(*bodies).landed]
    assert (fault in found) == landed


def _charge(attempt: int, ordinal: int) -> RequestReceived:
    return RequestReceived(
        attempt=attempt,
        request=10 * attempt + ordinal,
        service="payments",
        operation="charge",
        ordinal=ordinal,
        wants=CHARGE,
    )


def _ended(attempt: int, how: How, code: int) -> AttemptEnded:
    return AttemptEnded(attempt=attempt, how=how, code=code, seconds=0.1)
