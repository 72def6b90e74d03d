"""What is done before an attempt begins, as text and as value."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from chaoskit.model.actions import AtPoint
from chaoskit.model.behaviours import Behaviour
from chaoskit.model.errors import UsageError
from chaoskit.model.points import START, WindowPoint
from chaoskit.model.preludes import (
    CLOCK_MAX_S,
    FORMS,
    HOWS,
    Changed,
    Clock,
    Damage,
    Prelude,
    Resumers,
    parse_prelude,
)
from chaoskit.model.schedule import Fault, Schedule, before, kill, parse_fault, parse_schedule
from tests.model.values import ANY_TEXT, CLOCKS, FAULTS, PRELUDES


@pytest.mark.parametrize(
    ("text", "prelude"),
    [
        ("clock:+7d", Clock(7, "d")),
        ("clock:+90s", Clock(90, "s")),
        ("damage:torn:run.db", Damage("torn", "run.db")),
        ("damage:stale:parts/**/*.json", Damage("stale", "parts/**/*.json")),
        ("damage:empty:x=[0-9],~?", Damage("empty", "x=[0-9],~?")),
        ("change:price", Changed("price")),
        ("change:2026/terms.v2", Changed("2026/terms.v2")),
        ("resumers:8", Resumers(8)),
        ("resumers:99", Resumers(99)),
        ("down:2@payments.*#*", Behaviour("down", "payments", "*", None, 2)),
        ("lose-reply@email.send#3", Behaviour("lose-reply", "email", "send", 3)),
    ],
)
def test_each_form_names_its_prelude(text: str, prelude: Prelude) -> None:
    """A word, a colon, and what belongs to it; a behaviour in its own form."""
    assert parse_prelude(text) == prelude
    assert str(prelude) == text


@pytest.mark.parametrize("form", FORMS)
def test_what_a_refusal_proposes_can_be_written(form: str) -> None:
    """Each of the forms is a prelude, once it has names of its own."""
    text = form.replace("GLOB", "run.db").replace("NAME", "price")
    assert str(parse_prelude(text)) == text


@given(PRELUDES)
def test_every_prelude_comes_back_from_its_text(prelude: Prelude) -> None:
    """Parsing is the inverse of printing."""
    assert parse_prelude(str(prelude)) == prelude


@given(PRELUDES)
def test_a_fault_at_the_start_is_its_prelude(prelude: Prelude) -> None:
    """It has no point in its text, and gives the same value back."""
    fault = before(str(prelude))
    assert fault == parse_fault(str(prelude)) == Fault(prelude, START)
    assert fault.is_prelude
    assert fault.action == prelude
    assert str(fault) == str(prelude)


@given(FAULTS)
def test_a_fault_is_either_done_before_or_at_a_point(fault: Fault) -> None:
    """A fault at a point is no prelude, and what is done before an attempt is nothing else."""
    before_it, at_it = isinstance(fault.action, Prelude), isinstance(fault.action, AtPoint)
    assert before_it == fault.is_prelude == (fault.point == START) == (not at_it)


@given(FAULTS)
def test_the_kind_of_a_fault_names_nothing_of_one_scenario(fault: Fault) -> None:
    """No place, number, name or file: only the word, and how a file is damaged."""
    word, _, rest = fault.kind.partition(":")
    assert word.replace("-", "").isalpha()
    assert str(fault).startswith(word)
    assert rest in ({*HOWS} if word == "damage" else {""})


@given(CLOCKS, st.sampled_from("smhd"))
def test_a_clock_counts_in_seconds(clock: Clock, unit: str) -> None:
    """A minute is sixty seconds, an hour sixty minutes, a day 24 hours."""
    assume(clock.seconds <= CLOCK_MAX_S)
    of = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    assert Clock(clock.number, unit).seconds * of[clock.unit] == clock.seconds * of[unit]


REFUSED = {
    "clock": "not a prelude: 'clock'; write one of clock:+7d",
    "clock:7d": "not a prelude",
    "clock:+0d": "not a prelude",
    "clock:+7": "not a prelude",
    "clock:+7w": "not a prelude",
    "clock:+7d@a#1": "not a prelude",
    "clock:+36501d": "100 years at once, at the most",
    "damage": "not a prelude",
    "damage:torn": "not a prelude",
    "damage:torn:": "not a prelude",
    "damage:torn:a b": "not a prelude",
    "damage:torn:a@b": "not a prelude",
    "damage:tron:a": "unknown damage 'tron'; nearest: torn",
    "damage:torn:/etc/passwd": "only files in the work folder are damaged",
    "damage:torn:..": "only files in the work folder are damaged",
    "damage:torn:a/../../b": "only files in the work folder are damaged",
    "change:": "not a prelude",
    "change:a b": "not a prelude",
    "change:-a": "not a prelude",
    "resumers:0": "2 to 99 resumers",
    "resumers:1": "2 to 99 resumers",
    "resumers:100": "2 to 99 resumers",
    "resumers:two": "2 to 99 resumers",
    "down": "not a behaviour",
    "down@payments.*#1": "down takes a number of requests or end",
    "reject:200@payments.*#1": "reject takes a status from 400 to 599",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_begins_like_a_prelude_and_is_none_is_refused_in_words(text: str) -> None:
    """The refusal names the text and what can be written, wherever it was written."""
    for parse in (parse_prelude, before, parse_fault, parse_schedule):
        with pytest.raises(UsageError) as refused:
            parse(text)
        assert REFUSED[text] in str(refused.value)


@pytest.mark.parametrize("text", ["kill@a#1", "late:1@a.b#1.received", "", "none", "clocks:+7d"])
def test_other_texts_are_no_business_of_preludes(text: str) -> None:
    """They are left to who reads faults; who wants a prelude is told its forms."""
    assert parse_prelude(text) is None
    with pytest.raises(UsageError, match="not a prelude"):
        before(text)


@given(ANY_TEXT | st.text("clokdamgetorn:+7@.#*", max_size=20))
@example("damage:torn:..a/b")
def test_any_text_is_refused_or_comes_back(text: str) -> None:
    """What is accepted prints as it was written."""
    try:
        prelude = parse_prelude(text)
    except UsageError:
        return
    assert prelude is None or str(prelude) == text


@given(st.lists(PRELUDES, min_size=1, max_size=3))
def test_several_may_come_before_one_attempt(preludes: list[Prelude]) -> None:
    """They stand in their order beside the fault of the attempt, which is not copied then."""
    landed = kill(WindowPoint("payments", "charge", 1, "applied"))
    done = tuple(before(str(prelude)) for prelude in preludes)
    schedule = Schedule(((landed,), (*done, landed)))
    assert parse_schedule(str(schedule)) == schedule
    assert not schedule.copied
    assert not schedule.timed
