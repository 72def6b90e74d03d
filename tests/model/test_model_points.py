"""Points as text and as value."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chaoskit.model.errors import UsageError
from chaoskit.model.points import (
    WINDOWS,
    CallPoint,
    CrossingPoint,
    Point,
    TimePoint,
    WindowPoint,
    parse_point,
)
from tests.model.values import ANY_TEXT, POINTS


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("payments.charge#23.applied", WindowPoint("payments", "charge", 23, "applied")),
        ("email.send#1.received", WindowPoint("email", "send", 1, "received")),
        ("shop.v1/charges:new#2.answered", WindowPoint("shop", "v1/charges:new", 2, "answered")),
        ("a.b.c#1.answered", WindowPoint("a", "b.c", 1, "answered")),
        ("charge.done#3", CrossingPoint("charge.done", 3)),
        ("step/7:commit-before#1", CrossingPoint("step/7:commit-before", 1)),
        ("250ms#1", CrossingPoint("250ms", 1)),
        ("0ms", TimePoint(0)),
        ("250ms", TimePoint(250)),
        ("pwrite(run.db-wal)#17", CallPoint("pwrite", "run.db-wal", 17)),
        ("sendto(payments)#4+after", CallPoint("sendto", "payments", 4, "after")),
        ("write(big.bin)#1+short:4096", CallPoint("write", "big.bin", 1, "short", 4096)),
        (
            "p1.p2:rename(a.tmp->a%20b)#1",
            CallPoint("rename", "a.tmp->a%20b", 1, who="p1.p2"),
        ),
        ("sync()#1", CallPoint("sync", "", 1)),
    ],
)
def test_each_form_names_its_point(text: str, point: Point) -> None:
    """The four forms of the documentation are read as the values that they name."""
    assert parse_point(text) == point
    assert str(point) == text


@pytest.mark.parametrize("text", ["email.send#1.aplied", "payments.v1/charges:new#2.applieed"])
def test_a_slip_in_a_window_gives_the_nearest(text: str) -> None:
    """A point whose last word is no window is told which one was meant."""
    with pytest.raises(UsageError, match=r"since app?lie*d is no window; nearest: applied"):
        parse_point(text)


@pytest.mark.parametrize(
    ("text", "word"), [("t1:write(a)#1", "t1"), ("p1.t2:rename(a->b)#3+after", "t2")]
)
def test_a_point_that_names_a_thread_says_what_to_leave_out(text: str, word: str) -> None:
    """An old token's point is refused by name: its ordinal counted the calls of one thread."""
    with pytest.raises(UsageError, match=f"names a thread.*leave out '{word}'"):
        parse_point(text)


@given(POINTS)
def test_every_point_comes_back_from_its_text(point: Point) -> None:
    """Parsing is the inverse of printing, and keeps the four kinds apart."""
    assert parse_point(str(point)) == point


@given(
    ANY_TEXT
    | st.text("ab_19.#:-/ms \n", max_size=14)
    | st.text("apt19.:()#+short", max_size=20).map(lambda text: f"p1:w(a){text}")
)
@example("w(a)#1+short:")
@example("w(a)#1+short:01")
@example("p0:w(a)#1")
@example("w(a\n)#1")
@example("a.b#1.aplied")
def test_any_text_is_a_point_that_prints_it_or_is_refused(text: str) -> None:
    """What is accepted prints as it was written; everything else is a usage error."""
    try:
        point = parse_point(text)
    except UsageError:
        return
    assert str(point) == text


@pytest.mark.parametrize("text", ["a#1٣", "a#١", "a.b#1٣.applied", "1٣ms", "٣ms"])  # noqa: RUF001
def test_digits_of_other_scripts_are_no_ordinals(text: str) -> None:
    """A point prints with the digits 0 to 9, so that is how it is written."""
    with pytest.raises(UsageError):
        parse_point(text)


@pytest.mark.parametrize("form", ["a#{}", "a.b#{}.applied", "{}ms"])
def test_a_number_beyond_all_measure_is_refused_or_read(form: str) -> None:
    """However many digits it has, it never raises anything but a usage error."""
    text = form.format("1" * 5000)
    try:
        point = parse_point(text)
    except UsageError:
        return
    assert str(point) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "charge",
        "charge#",
        "charge#0",
        "charge#03",
        "charge#-1",
        "#1",
        ".a#1",
        "a b#1",
        "a#1 ",
        " a#1",
        "a#1\n",
        "05ms",
        "-5ms",
        "5 ms",
        "5s",
        "a.b#1.",
        "a.b#1.APPLIED",
        "a.b#1.applied.applied",
        "charge#1.applied",
    ],
)
def test_what_is_no_point_is_refused_with_all_forms(text: str) -> None:
    """The refusal quotes the text and shows one example of each form."""
    with pytest.raises(UsageError) as refused:
        parse_point(text)
    words = str(refused.value)
    assert words.startswith(f"not a point: {text!r}")
    assert all(form in words for form in ("payments.charge#23.applied", "charge.done#3", "250ms"))


def test_a_request_has_three_windows_in_the_order_of_its_life() -> None:
    """Received, applied, answered: the order in which the sweep lists them."""
    assert WINDOWS == ("received", "applied", "answered")
