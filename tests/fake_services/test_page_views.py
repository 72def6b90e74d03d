"""What the page shows of the books: pure, bounded, without secrets, and fit to be shown."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.behaviours import KINDS, parse_behaviour
from chaoskit.model.effects import Effect
from chaoskit.model.errors import UsageError
from chaoskit.model.hosting import RequestInfo
from fake_services.host import HttpService
from fake_services.page import views
from fake_services.page.chronicle import REQUESTS_KEPT, Asked, Chronicle, Noted
from fake_services.page.controls import BEHAVIOURS_MOST, Controls
from fake_services.page.desk import Desk
from fake_services.page.safe import LINE_MOST, TEXT_MOST, VALUE_MOST, line, lines, value
from fake_services.shown import Rows, Shown
from tests.fake_services.notes import Notes

SECRET = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"


def effect(text: str = "a", service: str = "payments", kind: str = "charge") -> Effect:
    """An effect that is about ``text``."""
    return Effect(service=service, kind=kind, fields=(("x", text),), who=text, what="a charge")


def chronicle(*effects: Effect) -> Chronicle:
    """A chronicle in which these have happened, one request for each."""
    made = Chronicle(clock=lambda: 7.0)
    for number, one in enumerate(effects, 1):
        made.asked(number, RequestInfo(service=one.service, operation=one.kind))
        made.happened([one], number)
        made.answered(number, 200, deduped=False, delivered=True)
    return made


def shown(noted: Sequence[Noted], cut: views.Cut) -> list[int]:
    """The numbers of the effects in a window."""
    return [row.number for row in views.effects(noted, lambda _: "", views.searched, cut).rows]


# The chronicle.


def test_an_effect_that_is_equal_to_an_earlier_one_says_so() -> None:
    """It names the first one; another service, kind or field makes it a new one."""
    found = chronicle(
        effect("a"), effect("b"), effect("a"), effect("a", kind="refund"), effect("a")
    )
    assert [noted.same_as for noted in found.effects] == [None, None, 1, None, 1]
    assert found.same_again == 2


def test_requests_are_numbered_from_one_after_a_reset() -> None:
    """What the world before is still told of is not taken for one of this world."""
    found = chronicle(effect(), effect())
    version = found.version
    found.clear()
    assert (found.effects, found.requests, found.version) == ([], {}, version + 1)
    found.answered(2, 500, deduped=False, delivered=True)
    assert found.requests == {}
    found.asked(3, RequestInfo(service="payments", operation="charge"))
    found.happened([effect()], 3)
    assert [(one.number, one.effects, one.effect) for one in found.requests.values()] == [(1, 1, 1)]
    assert found.effects[0].request == 1


def test_only_the_latest_requests_are_kept_and_all_are_counted() -> None:
    """The bound holds; what was dropped is counted all the same."""
    found = Chronicle()
    for number in range(1, REQUESTS_KEPT + 11):
        found.asked(number, RequestInfo(service="jobs", operation="poll"))
    assert next(iter(found.requests)) == 11
    assert len(found.requests_of("jobs")) == REQUESTS_KEPT
    assert found.asked_for("jobs") == {"poll": REQUESTS_KEPT + 10}


def test_every_change_is_told_once() -> None:
    """A request, its effect and its answer are three; an effect list that is empty is none."""
    found, told = Chronicle(), [0]
    found.on_change = lambda: told.append(found.version)
    found.asked(1, RequestInfo(service="jobs", operation="poll"))
    found.happened([], 1)
    found.answered(1, 200, deduped=False, delivered=True)
    found.happened([effect()])
    assert told == [0, 2, 3, 4]


# Windows.


@given(st.integers(0, 30), st.integers(0, 40), st.integers(0, 300))
def test_a_window_is_a_slice(size: int, start: int, limit: int) -> None:
    """It holds what a slice would, never more than the bound, and knows how many there are."""
    noted = chronicle(*(effect(str(n)) for n in range(size))).effects
    told = views.effects(noted, lambda _: "", views.searched, views.Cut(start=start, limit=limit))
    assert [row.number for row in told.rows] == list(range(1, size + 1))[start:][:limit]
    assert told.total == size


def test_a_window_is_bounded() -> None:
    """However many lines are asked for, no more than the bound are given."""
    found = chronicle(*(effect(str(n)) for n in range(300)))
    cut = views.Cut(limit=10_000)
    assert len(shown(found.effects, cut)) == views.WINDOW_MOST
    assert len(views.requests(found.requests_of(""), cut).rows) == views.WINDOW_MOST


def test_a_filter_keeps_what_has_all_words() -> None:
    """In any letters, in any field; nothing that is blotted out can be found by its text."""
    noted = chronicle(effect("Ann Lee"), effect("Bo Lee"), effect(f"Cy {SECRET}")).effects
    assert shown(noted, views.Cut(words="lee ANN")) == [1]
    assert shown(noted, views.Cut(words="lee")) == [1, 2]
    assert shown(noted, views.Cut(words=SECRET)) == []
    assert shown(noted, views.Cut(words="redacted")) == [3]


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({}, "not answered yet"),
        ({"status": 200, "delivered": True}, "done"),
        ({"status": 200, "delivered": True, "deduped": True}, "a repeat: answered as before"),
        ({"status": 200, "effects": 1}, "applied, the answer lost"),
        ({"status": 504}, "cut off"),
        ({"status": 504, "landed": True, "effects": 1}, "cut off, carried out later"),
        ({"status": 402, "delivered": True}, "refused"),
        ({"status": 500, "delivered": True, "effects": 1}, "applied, answered with an error"),
    ],
)
def test_what_came_of_a_request_is_said_in_words(facts: dict[str, int], says: str) -> None:
    """Lost answers, repeats, refusals and late landings are told apart."""
    asked = Asked(number=1, at_s=0.0, service="p", operation="c", key=None, **facts)  # type: ignore[arg-type]
    assert views.outcome(asked) == says


# Texts.


@given(st.text(st.characters(), max_size=400))
def test_whatever_was_sent_can_be_encoded_and_seen(text: str) -> None:
    """Halves of characters, controls and the like are spelt out; JSON takes all of it."""
    noted = chronicle(msgspec.structs.replace(effect(text), key=text, ref=text)).effects[0]
    thing = Shown(state=text, facts={"f": [text]}, texts=[("Text", text)])
    told = json.loads(msgspec.json.encode(views.detail(noted, thing)))
    assert told["line"]["who"] == line(text)
    assert not set(told["texts"][0]["text"]) & set("\x1b\x00\u202e\u2028\r")


def test_long_texts_are_cut_and_say_how_long_they_were() -> None:
    """A line, a value and a text each have their bound."""
    million = "M" * 1_000_000
    for cut, most in ((line(million), LINE_MOST), (value("x", million), VALUE_MOST),
                      (lines(million), TEXT_MOST)):  # fmt: skip
        assert cut == f"{'M' * most}… (1,000,000 characters)"


def test_secrets_do_not_show_anywhere() -> None:
    """By name or by shape: in fields, facts, texts, headers, and columns of tables."""
    noted = chronicle(effect(f"x {SECRET}")).effects[0]
    thing = Shown(
        facts={"Headers": {"Authorization": ["Basic abcdefghijkl"], "password": "hush hush"}},
        texts=[("Text", f"the key is {SECRET}\nand no more")],
    )
    rows = Rows(("id", "Password"), [["1", "hush hush"], ["2", None]], 2)
    told = msgspec.json.encode([views.detail(noted, thing), views.table("users", 0, rows)]).decode()
    for secret in (SECRET, "hush hush", "abcdefghijkl"):
        assert secret not in told
    assert told.count("[redacted]") == 6
    assert '["2",null]' in told


def test_lines_stay_lines() -> None:
    """Line ends and tabs of a text are kept, whichever way it ends its lines."""
    assert lines("a\r\n\tb\nc\x07") == "a\n\tb\nc\\x07"


def test_a_thing_with_endless_fields_is_cut() -> None:
    """So many are shown, and it is said how many are left out."""
    many = tuple((f"n{n:04}", "x") for n in range(views.FIELDS_MOST + 50))
    noted = chronicle(msgspec.structs.replace(effect(), fields=many)).effects[0]
    told = views.detail(noted, None)
    assert (len(told.fields), told.left_out) == (views.FIELDS_MOST, 50)


# Services.


def test_a_service_of_ones_own_is_shown_with_what_it_says() -> None:
    """Whatever core it has; one that shows nothing besides has its effects alone."""

    class Telling(Notes):
        def show(self, ref: str) -> Shown | None:
            return Shown(state=f"kept {ref}") if ref else None

    noted = chronicle(msgspec.structs.replace(effect(service="notes"), ref="r1"))
    for core, state in ((Telling(), "kept r1"), (Notes(), "")):
        services = [HttpService(core)]
        controls = Controls(services, noted, (), 0)
        desk = Desk(services, noted, controls, {})
        assert desk.effects(views.Cut(service="notes")).rows[0].state == state
        assert desk.effect(1).line.state == state
        assert [one.name for one in desk.state().services] == ["notes"]
        controls.switch("lose-reply@notes.note#1", on=True)
        assert [one.on for one in desk.state().behaviours] == [True]


def test_so_many_behaviours_are_listed_and_no_more() -> None:
    """The oldest that is off gives way; where all are on, one has to be switched off first."""
    services = [HttpService(Notes())]
    controls = Controls(services, Chronicle(), (), 0)
    for number in range(1, BEHAVIOURS_MOST + 1):
        controls.switch(f"lose-reply@notes.note#{number}", on=True)
    with pytest.raises(UsageError, match="switch one off first"):
        controls.switch("lose-reply@notes.note#999", on=True)
    controls.switch("lose-reply@notes.note#7", on=False)
    controls.switch("lose-reply@notes.note#999", on=True)
    listed = [one.behaviour for one in controls.behaviours()]
    assert len(listed) == BEHAVIOURS_MOST
    assert "lose-reply@notes.note#7" not in listed


# Behaviours.


def test_every_kind_of_behaviour_has_its_meaning() -> None:
    """Of each kind it is said what it does to a request."""
    assert tuple(views.MEANINGS) == KINDS


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lose-reply@p.charge#3", "number 3 of p.charge is applied, and its connection cut"),
        ("late-reply:250ms@p.*#*", "each p.* is applied at once, and answered late (250 ms)"),
        ("commit-late:end@p.charge#1",
         "number 1 of p.charge is cut off, and applied later (when they are let land)"),
        ("reject:429@p.charge#2", "number 2 of p.charge is refused, and not applied (with 429)"),
    ],
)  # fmt: skip
def test_a_behaviour_is_said_in_words(text: str, says: str) -> None:
    """Which request it meets, and what comes of it."""
    assert views.meaning(parse_behaviour(text)) == says


def test_a_behaviour_whose_request_has_been_is_past() -> None:
    """Requests are counted over every operation that it covers; one for each is never past."""
    counts = {"charge": 2, "refund": 1}
    for text, past in (("lose-reply@p.charge#2", True), ("lose-reply@p.charge#3", False),
                       ("lose-reply@p.*#3", True), ("lose-reply@p.charge#*", False)):  # fmt: skip
        assert views.behaviour(parse_behaviour(text), counts, on=True).past is past
