"""The parts of the HTML report: what they make of stored histories, before a browser sees it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shlex
import zlib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.synthetic_store import FLAKY_AT, UNKNOWN_AT, make
from chaoskit.campaign.options import Options
from chaoskit.campaign.store import Store
from chaoskit.cli.run import run as run_command
from chaoskit.model.effects import Effect
from chaoskit.model.events import Body
from chaoskit.model.history import History
from chaoskit.model.points import parse_point
from chaoskit.model.schedule import parse_schedule
from chaoskit.model.token import CommandSpec, Target
from chaoskit.reporting.html import money
from chaoskit.reporting.html.axis import Axis
from chaoskit.reporting.html.duplicates import TRIALS_MOST, duplicates
from chaoskit.reporting.html.kill_map import LANES, Mark, Shown, first_fault, kill_map, spans
from chaoskit.reporting.html.outcomes import FLAKY, INVALID, NOT_TRIED, UNKNOWN, VALID
from chaoskit.reporting.html.packing import Strings, packed, source
from chaoskit.reporting.html.page import render
from chaoskit.reporting.html.repeats import repetition
from chaoskit.reporting.html.sentences import again, verdict_sentence
from chaoskit.reporting.html.tape import REDONE, REPEATED, WHATS, WITNESS, tape
from chaoskit.reporting.html.waste import Waste
from chaoskit.reporting.places import Places
from chaoskit.reporting.summary import summarize
from tests.checkers.builder import Story, charge, expecting, judged, mail, teaches, undisturbed
from tests.reporting.test_hostile import SECRETS
from tests.reporting.test_hostile import folder as hostile_run
from tests.reporting.test_places import SURVEY

__all__ = ["hostile_run"]

DATA = re.compile(r'<script type="application/json" id="([a-z0-9-]+)">"([A-Za-z0-9+/=]*)"</script>')
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab", max_size=3), inner),
)


def unpack(text: str) -> Any:
    """What `packed` packed."""
    return json.loads(zlib.decompress(base64.b64decode(text), -15))


def data_of(page: str) -> dict[str, Any]:
    """Everything that a page holds, by the id of its element."""
    return {name: unpack(text) for name, text in DATA.findall(page)}


@given(JSON)
def test_what_is_packed_is_unpacked_and_is_no_markup(value: object) -> None:
    """Any JSON comes back as it was, and in between has no character that HTML knows."""
    text = packed(value)
    assert unpack(text) == value
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", text)


@given(st.lists(st.text(max_size=4)))
def test_a_table_of_texts_holds_each_once(texts: list[str]) -> None:
    """The number of a text leads back to it."""
    strings = Strings()
    numbers = [strings.number(text) for text in texts]
    assert [strings.texts[number] for number in numbers] == texts
    assert len(set(strings.texts)) == len(strings.texts)


# ---- the map


def test_points_lie_on_the_line_in_the_order_of_the_run() -> None:
    """Before, inside and after a call; a window; what a call sent has landed after it."""
    axis = Axis(SURVEY)
    order = """
        open(a)#1  open(a)#1+after  begun#1
        sendto(payments)#1  sendto(payments)#1+short:40
        payments.charge#1.received  payments.charge#1.applied  payments.charge#1.answered
        sendto(payments)#1+after  write(a)#1  write(a)#1+short:4096  write(a)#1+after
        fsync(a)#1  payments.charge#3.received  payments.charge#3.applied
        payments.charge#3.answered  p1:write(a)#1
    """
    places = [axis.place(parse_point(text)) for text in order.split()]
    known = [place for place in places if place is not None]
    assert places == known == sorted(known)
    assert len(set(places)) == len(places)
    assert axis.place(parse_point("write(a)#9")) is None
    assert axis.length == len(SURVEY.events)


def test_times_lie_between_the_events_around_them() -> None:
    """By the clock of the undisturbed run; after its end, at the end."""
    story = undisturbed(charge("a"), charge("b")).history  # an event each ms
    axis = Axis(story)
    assert axis.place(parse_point("0ms")) == 0
    assert axis.place(parse_point("4ms")) == 3
    assert axis.place(parse_point("9999ms")) == axis.length


def mark(x: int, outcome: int) -> Mark:
    """One of a plain kill."""
    return Mark(0, x, outcome, 0, 0, 0, 0)


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(range(5)))))
def test_windows_of_failure_hold_failures_and_nothing_else(rows: list[tuple[int, int]]) -> None:
    """Each failing place is in one span, no other place is in any, and spans do not touch."""
    found = list(spans([mark(x, outcome) for x, outcome in rows]))
    failing = {x for x, outcome in rows if outcome in {FLAKY, INVALID}}
    inside = {x for x, _ in rows for start, end in found if start <= x <= end}
    assert inside == failing
    assert all(one[1] < other[0] for one, other in pairwise(found))


@pytest.mark.parametrize(
    ("schedule", "lane"),
    [
        ("kill@open(a)#1", "calls"),
        ("kill-leader@payments.charge#1.applied", "windows"),
        ("kill@begun#1", "crossings"),
        ("kill@line/task.py:7#1", "lines"),
        ("kill@1ms", "times"),
        ("late:1@payments.charge#1.received", "late landing"),
        ("power:drop@open(a)#1+after", "power loss"),
        ("kill@open(a)#1 / kill@open(a)#1", "further kills"),
        ("kill@open(a)#1 / clock:+7d", "other faults"),
        ("pause@payments.charge#1.applied", "other faults"),
        ("- / kill@payments.charge#1.applied", "windows"),
    ],
)
def test_each_sort_of_trial_has_its_lane(schedule: str, lane: str) -> None:
    """The map shows it on that lane, in the place of its first fault."""
    shown = Shown(0, parse_schedule(schedule), VALID, -1)
    survey = (SURVEY, SURVEY, expecting())
    made = kill_map(survey, (), [shown], Places(SURVEY, {}), Strings())
    assert [LANES.index(name) for name in made.lanes] == [LANES.index(lane)]
    assert [one.trials for one in made.marks] == [(0,)]
    fault = first_fault(shown.schedule)
    assert fault is not None
    assert made.marks[0].x == round((Axis(SURVEY).place(fault.point) or 0) * 10)


def test_a_point_that_was_not_tried_is_on_the_map() -> None:
    """As such; and the worst of several trials decides about one that was."""
    point = "kill@payments.charge#1.applied"
    trials = [
        Shown(0, parse_schedule(point), VALID, -1),
        Shown(1, parse_schedule(point), INVALID, 2),
        Shown(2, parse_schedule("kill@nowhere#1"), INVALID, 0),
    ]
    strings = Strings()
    survey = (SURVEY, SURVEY, expecting())
    made = kill_map(survey, ("windows",), trials, Places(SURVEY, {}), strings)
    by_name = {strings.texts[one.name]: one for one in made.marks}
    assert by_name[point].outcome == INVALID
    assert (by_name[point].kind, by_name[point].trials) == (2, (1, 0))
    assert by_name["kill@payments.charge#2.applied"].outcome == NOT_TRIED
    assert made.placeless == 1
    x = by_name[point].x
    assert made.spans == [(x, x)]


# ---- the timeline


def rows(history: History, **given_: Any) -> tuple[list[dict[str, Any]], int]:
    """A tape with its numbers turned back into words."""
    strings = Strings()
    made = tape(((e.index, e.at_us, e.body) for e in history.events), strings, **given_)
    names = {number: kind for kind, number in WHATS.items()}
    full = [row + [0] * (8 - len(row)) for row in made.rows]
    told = [
        {
            "what": names[row[0]].__name__,
            "lane": made.lanes[row[3]],
            "title": strings.texts[row[4]],
            "detail": strings.texts[row[5]],
            "marks": row[6],
            "first": row[7],
        }
        for row in full
    ]
    return told, made.error


KILLED = (
    Story()
    .starts()
    .step("one", "started")
    .does(charge("ann"))
    .step("one", "recorded")
    .step("two", "started")
    .does(charge("bob"))
    .killed("payments.charge#2.answered")
    .starts()
    .step("one", "started")
    .does(charge("ann"), charge("bob"))
    .ends(says="done\x1b[1m <b>\n")
)
EXPECTED = teaches(
    Story().starts().step("one", "started").does(charge("ann")).step("one", "recorded")
    .step("two", "started").does(charge("bob")).ends()
)  # fmt: skip


def test_a_timeline_marks_what_was_repeated_and_names_the_first() -> None:
    """The second charge of each and the step, with links; the first error is the first repeat."""
    judgement = judged(KILLED, EXPECTED)
    found = repetition(KILLED.history, EXPECTED, judgement)
    told, error = rows(KILLED.history, marked=found.marked)
    repeats = [row for row in told if row["marks"] & REPEATED]
    assert [row["title"] for row in repeats] == ["charge of 100 to ann", "charge of 100 to bob"]
    for row in repeats:
        first = told[row["first"]]
        assert (first["title"], first["marks"] & REPEATED) == (row["title"], 0)
    assert told[error] is repeats[0]
    (redone,) = [row for row in told if row["marks"] & REDONE]
    assert (redone["title"], told[redone["first"]]["title"]) == ("one started", "one recorded")
    assert any(row["marks"] & WITNESS for row in told)
    assert found.effects == 2
    assert found.steps == 1


def test_each_event_has_a_lane_and_safe_words() -> None:
    """Every sort of event is told; services have their own lanes; outputs are spelt out."""
    told, _ = rows(KILLED.history)
    assert {row["lane"] for row in told} == {"task", "steps", "payments"}
    assert told[-1]["title"] == "attempt 2 ends: exit code 0"
    assert told[-1]["detail"].endswith("done\\x1b[1m <b>")
    for kind in WHATS:
        assert kind in Body.__args__, kind
    assert set(WHATS) == set(Body.__args__)


def test_a_secret_field_and_a_long_one_are_not_shown() -> None:
    """Known names are blotted out, and what is endless is cut with its length."""
    secret = Effect(
        service="payments", kind="charge", fields=(("cvc", "123"), ("note", "M" * 1_000_000))
    )
    told, _ = rows(undisturbed(secret).history)
    detail = next(row["detail"] for row in told if row["what"] == "EffectApplied")
    assert "cvc: [redacted]" in detail
    assert "(1000000 characters)" in detail
    assert len(detail) < 400


# ---- the tables


def test_the_table_has_one_line_for_each_fact_that_happened_too_often() -> None:
    """Over all trials: who, how often in the worst, by which attempts, with which keys."""
    expected = expecting(
        charge("ann"), charge("bob"), mail("ann"), contract={"email.send": "at-least-once"}
    )
    one = Story().starts().does(charge("ann", key="k1")).killed("payments.charge#1.answered")
    one.starts().does(charge("ann", key="k2"), charge("bob"), mail("ann"), mail("ann")).ends()
    two = Story().starts().does(charge("ann", key="k1")).killed("payments.charge#1.answered")
    two.starts().does(charge("ann", key="k1")).killed("payments.charge#1.answered")
    two.starts().does(charge("ann", key="k1"), charge("bob"), mail("ann")).ends()
    extras = [
        (number, extra)
        for number, story in enumerate((one, two))
        for extra in repetition(story.history, expected, judged(story, expected)).extras
    ]
    ann, letter = duplicates(extras, expected)
    assert (ann.operation, ann.who, ann.expected, ann.seen) == ("payments.charge", "ann", 1, 3)
    assert (ann.attempts, ann.keys, ann.number) == ("1, 2, 3", "the same: k1", 2)
    assert ann.trials == (1, 0)
    assert ann.which == "customer=ann"
    assert ann.identity == "amount=100, customer=ann"
    assert (letter.allowed, ann.allowed, letter.trials) == (True, False, (0,))
    many = duplicates([(number, extras[0][1]) for number in range(200)], expected)
    assert (many[0].number, len(many[0].trials)) == (200, TRIALS_MOST)
    assert many[0].keys == "k1, k2"


def test_waste_counts_what_was_done_again() -> None:
    """Steps, effects, money by currency, and the trial that was the worst."""
    story = Story().starts().does(charge("ann", 1250, currency="eur"))
    story.killed("payments.charge#1.answered").starts()
    story.does(charge("ann", 1250, currency="eur"), charge("bob", 300, currency="jpy")).ends()
    expected = expecting(charge("ann", 1250, currency="eur"), charge("bob", 300, currency="jpy"))
    waste = Waste(None)
    found = repetition(story.history, expected, judged(story, expected))
    waste.add(0, undisturbed(charge("ann", 1250, currency="eur")).history, repetition(
        undisturbed().history, expected, judged(undisturbed(), expected)), real=False)  # fmt: skip
    waste.add(7, story.history, found, real=True)
    costs = {cost.what: (cost.trials, cost.in_all, cost.worst) for cost in waste.costs}
    assert costs["effects that happened once too often"] == (1, "1", 7)
    assert costs["money that those effects move"] == (1, "12.50 EUR", 7)
    assert not any("seconds" in what for what in costs), "nothing to compare times with"
    untraced = Waste(undisturbed().history)
    untraced.add(7, story.history, found, real=True)
    assert any("seconds" in cost.what for cost in untraced.costs)


@pytest.mark.parametrize(
    ("amount", "currency", "words"),
    [
        ("1", "eur", "0.01 EUR"),
        ("123456789", "EUR", "1,234,567.89 EUR"),
        ("300", "jpy", "300 JPY"),
        ("1500", "kwd", "1.500 KWD"),
        ("1.5", "eur", ""),
        ("10", "euros", ""),
        ("", "eur", ""),
        ("٣", "eur", ""),
    ],
)
def test_amounts_are_money_only_where_both_fields_say_so(
    amount: str, currency: str, words: str
) -> None:
    """Whole smallest units and a currency of three letters; anything else is no money."""
    effect = Effect(service="p", kind="charge", fields=(("amount", amount), ("currency", currency)))
    found = money.amount_of(effect)
    assert (money.in_words({found[0]: found[1]}) if found else "") == words


# ---- the page


def test_the_command_runs_the_same_campaign_again() -> None:
    """The command line's own parser reads back what was asked for, and no credentials stand in
    it.
    """
    options = Options(
        target=Target(scenario="a b.py"),
        seed=7,
        mechanisms=("windows",),
        in_flight=(),
        max_points=9,
        depth=2,
        times=3,
        only=("kill@a#1",),
        snapshots=False,
    )
    words = shlex.split(again(options))
    assert words[:2] == ["chaoskit", "run"]
    with click.Context(run_command) as above:
        parsed = run_command.make_context("run", words[2:], parent=above).params
    wanted = {
        "scenario": "a b.py", "seed": 7, "mechanisms": "windows", "in_flight": "landed",
        "max_points": 9, "depth": 2, "times": 3, "only": ("kill@a#1",), "snapshots": False,
    }  # fmt: skip
    assert {name: parsed[name] for name in wanted} == wanted
    spec = CommandSpec(command=("task", SECRETS[0]), env={"API_KEY": "hunter2"})
    told = again(Options(target=Target(command=spec)))
    assert told.endswith("-- task '[redacted]'")
    assert "hunter2" not in told


@pytest.mark.parametrize("kind", ["valid", "invalid", "unknown", "soak"])
def test_the_verdict_is_one_sentence(campaigns: Mapping[str, Path], kind: str) -> None:
    """It says what was tried and what came of it, and for UNKNOWN why."""
    with Store(campaigns[kind]) as store:
        sentence = verdict_sentence(summarize(store))
    wanted = {
        "valid": r"Killed at \d+ of \d+ points and resumed: every effect happened as often as .*\.",
        "invalid": r"Killed at \d+ of \d+ .*: an effect happened more often .* in \d+ trials.*\.",
        "unknown": r"Nothing is proven either way: .*judge by.*\.",
        "soak": r"In \d+ trials of random schedules, an effect .* in \d+ trials.*\.",
    }
    assert re.fullmatch(wanted[kind], sentence), sentence


def test_the_page_allows_its_own_script_and_style_and_nothing_else(
    campaigns: Mapping[str, Path],
) -> None:
    """The policy names the digests of what stands in the page; there is no address in it."""
    with Store(campaigns["invalid"]) as store:
        page = render(summarize(store), store)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    rules = dict(rule.strip().split(" ", 1) for rule in html.unescape(policy[1]).split(";"))
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert rules == {
        "default-src": "'none'",
        "script-src": source(script),
        "style-src": source(style),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert source(script) == f"'sha256-{digest}'"
    assert not re.findall(r"(?:src|href)=\"(?!#|data:,\")[^\"]*\"", page)
    assert "://" not in page


def test_the_data_of_a_page_has_no_secret_and_no_megabyte(hostile_run: Path) -> None:
    """Unpacked, every text in it is safe: known credentials out, controls spelt, length bounded."""
    with Store(hostile_run) as store:
        page = render(summarize(store), store)
    text = json.dumps(data_of(page), ensure_ascii=False) + page
    for secret in SECRETS:
        assert secret not in text
    assert not set(text) & set("\x1b\x07\x00\u202e\u2028\udcff")
    assert "M" * 2_001 not in text
    assert "[redacted]" in text


def test_a_page_with_no_room_keeps_the_histories_of_failures(tmp_path: Path) -> None:
    """What was VALID goes first, its outcome stays, and the page says how many it left out."""
    trials = 30
    with Store(make(tmp_path / "run", trials)) as store:
        summary = summarize(store)
        whole = data_of(render(summary, store))
        page = render(summary, store, events_most=0)
    for data, kept in ((whole, trials), (data_of(page), trials // 3 + 1)):
        index = data["data"]["trials"]
        assert len(index) == trials
        assert sum(row[7] >= 0 for row in index) == kept
        outcomes = [row[2] for row in index]
        assert outcomes[FLAKY_AT] == FLAKY
        assert outcomes[UNKNOWN_AT] == UNKNOWN
        assert outcomes.count(INVALID) == trials // 3
    assert f"{trials - trials // 3 - 1} trials that were VALID are listed without" in page


def test_blocks_hold_the_trials_that_the_index_says(tmp_path: Path) -> None:
    """Across several blocks each trial's details are found where its line says."""
    with Store(make(tmp_path / "run", 1_200)) as store:
        data = data_of(render(summarize(store), store))
    blocks = [name for name in data if name.startswith("block-")]
    assert len(blocks) > 1
    for row in data["data"]["trials"]:
        details = data[f"block-{row[7]}"]["trials"][row[8]]
        strings = data[f"block-{row[7]}"]["strings"]
        assert row[0] in {strings[cells[4]] for cells in details["tape"]["rows"] if len(cells) > 4}
        assert len(details["findings"]) == (row[2] == INVALID)
